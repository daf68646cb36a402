/** What a run does besides itself: staged effects, and actions that the store carries out for a durable call. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { Action, Effect, NewCheckpoint, Refusal } from '../commands.ts'
import type { EncodedValue } from '../records.ts'
import { checkStart, enqueue } from './enqueue.ts'
import { signal } from './ripples.ts'
import type { Rows } from './rows.ts'

/** What a fenced command appends to the history of its run. */
export interface Recording {
  readonly runId: string
  readonly token: string
  readonly entries: readonly NewCheckpoint[]
}

export interface Effected {
  readonly rippled: boolean
  readonly refusals: readonly Refusal[]
}

export function checkEffects(entries: readonly NewCheckpoint[]): void {
  for (const { effects = [] } of entries) {
    for (const effect of effects) if (effect.type === 'start') checkStart(effect.run)
  }
}

/** Records entries and applies the effects of those that are new. The caller has checked the fence. */
export function recordAll(rows: Rows, { runId, token, entries }: Recording, now: EpochMs): Effected {
  let rippled = false
  const refusals: Refusal[] = []
  for (const entry of entries) {
    if (!rows.record(runId, entry, now)) continue
    for (const effect of entry.effects ?? []) {
      const effected = applyEffect(rows, effect, startIdOf(token, entry), now)
      if (effected.rippled) rippled = true
      refusals.push(...effected.refusals)
    }
  }
  return { rippled, refusals }
}

function applyEffect(rows: Rows, effect: Effect, startId: string, now: EpochMs): Effected {
  switch (effect.type) {
    case 'put':
    case 'delete':
      rows.kv.change(effect)
      return { rippled: false, refusals: [] }
    case 'signal':
      return { rippled: signal(rows, effect.key, effect.payload, now).type === 'delivered', refusals: [] }
    case 'start': {
      const outcome = enqueue(rows, [effect.run], startId, now)
      if (outcome.type !== 'accepted') return { rippled: false, refusals: [outcome] }
      return { rippled: outcome.runs.some(({ created }) => created), refusals: [] }
    }
  }
}

export type Performed =
  | { readonly type: 'done'; readonly value: EncodedValue }
  | { readonly type: 'refused'; readonly refusal: Refusal }

export function perform(rows: Rows, action: Action, startId: string, now: EpochMs): Performed {
  if (action.type === 'signal') {
    return { type: 'done', value: JSON.stringify(signal(rows, action.key, action.payload, now).type) }
  }
  const outcome = enqueue(rows, [action.run], startId, now)
  if (outcome.type !== 'accepted') return { type: 'refused', refusal: outcome }
  const [run] = outcome.runs
  invariant(run !== undefined, 'a start was accepted without a run')
  return { type: 'done', value: JSON.stringify({ id: run.id, created: run.created }) }
}

/** Names the entry that starts a run, as a command of its own would be named. */
export function startIdOf(token: string, { seq }: { readonly seq: number }): string {
  return `${token}:${seq}`
}
