/** Whether what a run has recorded of its dealings with others is what the store knows of them. */
import type { CheckpointRecord } from '../../../src/store/records.ts'
import type { Facts } from './facts.ts'
import { endingOf } from './outsiders.ts'
import { codec } from './values.ts'

/** What does not agree. */
export function disagreements(facts: Facts): readonly string[] {
  const outcomes = facts.entries.filter(({ type }) => type === 'outcome')
  return [
    ...outcomes.flatMap((entry) =>
      disagreementsOf(facts, entry).map((what) => `${entry.name} at ${entry.position}: ${what}`),
    ),
    ...signalsTwice(facts),
  ]
}

function disagreementsOf(facts: Facts, entry: CheckpointRecord): readonly string[] {
  switch (entry.verb) {
    case 'waitForSignal':
      return entry.failed ? takenInVain(facts, entry) : waitDisagrees(facts, entry)
    case 'sendSignal':
      return sendDisagrees(facts, entry)
    case 'start':
      return entry.failed ? [] : startDisagrees(facts, entry)
    case 'result':
      return resultDisagrees(facts, entry)
    case 'step':
      return effectsDisagree(facts, entry)
    default:
      return []
  }
}

function recordedValue({ value }: CheckpointRecord): unknown {
  return value === null ? undefined : codec.decode(value)
}

function takenInVain(facts: Facts, { position }: CheckpointRecord): readonly string[] {
  return facts.told.has(position) ? ['the key was taken, and yet it was told something'] : []
}

function waitDisagrees(facts: Facts, entry: CheckpointRecord): readonly string[] {
  const told = facts.told.get(entry.position)
  const expected =
    told === undefined || told === 'expired'
      ? codec.encode({ ok: false })
      : codec.encode({ ok: true, payload: codec.decode(told) })
  return entry.value === expected ? [] : [`it was told ${told} and recorded ${entry.value}`]
}

/** A signal that was buffered is for one wait, and one that was delivered for those that were open. */
function signalsTwice(facts: Facts): readonly string[] {
  const taken = new Map<string, number>()
  for (const payload of facts.told.values()) taken.set(payload, (taken.get(payload) ?? 0) + 1)
  return facts.sent.flatMap(({ payload, outcome }) =>
    outcome !== 'delivered' && payload.includes('number') && (taken.get(payload) ?? 0) > 1
      ? [`${payload} was buffered and taken by ${taken.get(payload)}`]
      : [],
  )
}

function sendDisagrees(facts: Facts, entry: CheckpointRecord): readonly string[] {
  const sent = facts.sent.filter(({ position }) => position === entry.position)
  return sent.length === 1 && sent[0]?.outcome === recordedValue(entry) ? [] : [`it was sent ${sent.length} times`]
}

function startDisagrees(facts: Facts, entry: CheckpointRecord): readonly string[] {
  const value = recordedValue(entry)
  const { id, created } =
    typeof value === 'object' && value !== null ? { id: '', created: false, ...value } : { id: '' }
  const known = facts.children.has(id) || facts.removed.has(id)
  return known && (created !== true || id === `run~${entry.position}`) ? [] : [`it started ${id}`]
}

function resultDisagrees(facts: Facts, entry: CheckpointRecord): readonly string[] {
  const { name: id, failed } = entry
  const value = recordedValue(entry)
  if (facts.removed.has(id))
    return failed && String(value).includes('RunNotFoundError') ? [] : [`it gave ${String(value)}`]
  const child = facts.children.get(id)
  const ending = child && endingOf(id, child.definition)
  if (ending === undefined || ending === 'removed') return ['it awaited nobody']
  if (ending.status === 'SUCCESS') return entry.value === ending.output ? [] : [`it gave ${entry.value}`]
  const expected = ending.status === 'CANCELLED' ? 'RunCancelledError' : 'RunFailedError'
  return failed && String(value).startsWith(expected) ? [] : [`it gave ${String(value)}`]
}

/** The effects of the attempt that succeeded, and no others, were applied once. */
function effectsDisagree(facts: Facts, entry: CheckpointRecord): readonly string[] {
  const applied = facts.applied.filter(({ position }) => position === entry.position)
  const value = recordedValue(entry)
  const staged = typeof value === 'string' && value.includes(' staged in ')
  if (!staged) return applied.length === 0 ? [] : ['it had effects, and staged none that count']
  const types = applied.map(({ effect }) => effect.type).join()
  if (types !== 'put,signal,start') return [`its effects were ${types}`]
  if (!value.endsWith(` staged in ${entry.attempts}`)) return ['it recorded another attempt']
  const text = codec.encode(value)
  const same = applied.every(({ effect }) => {
    if (effect.type === 'put') return effect.value === text
    if (effect.type === 'signal') return effect.payload === text
    return effect.type === 'start' && effect.run.input === text && effect.run.parentId === null
  })
  return same ? [] : ['the effects of another attempt were applied']
}
