/** Commands of the model test: what was drawn, aimed at what the reference holds now. */
import type { Command, Effect, KvChange, NewCheckpoint, NewRun, Settlement, Store } from '../contract.ts'
import type { RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import { newClaim, newRun, outcome } from './makers.ts'
import type { ManualClock } from './manual-clock.ts'
import type { CommitOperation, DrawnEffect, DrawnEntry, DrawnRun } from './model-operations.ts'
import { IDS } from './model-operations.ts'

const LEASE_MS = 10_000

type Aimed = Extract<CommitOperation, { readonly target: unknown }>
type Fenced = Exclude<Aimed, { readonly type: 'cancel' | 'requeue' }>

export class Commands {
  readonly #clock: ManualClock
  readonly #reference: Store
  #names = 0

  constructor(clock: ManualClock, reference: Store) {
    this.#clock = clock
    this.#reference = reference
  }

  /** A name that was not given before. */
  name(what: string): string {
    this.#names += 1
    return `${what} ${this.#names}`
  }

  async of(drawn: CommitOperation): Promise<Command> {
    const commandId = this.name(drawn.type)
    switch (drawn.type) {
      case 'start':
        return { type: 'enqueue', commandId, runs: drawn.runs.map((run) => this.#newRun(run)) }
      case 'signal':
        return { type: 'signal', commandId, key: drawn.key, payload: commandId }
      case 'kv':
        return { type: 'kv', commandId, change: toChange(drawn) }
      case 'cancel':
      case 'requeue':
        return { type: drawn.type, commandId, runId: (await this.#aim(drawn)).runId }
      default:
        return this.#fenced(drawn)
    }
  }

  async #fenced(drawn: Fenced): Promise<Command> {
    const { runId, run } = await this.#aim(drawn)
    const fence = { runId, token: drawn.stale ? 'stale' : (run?.token ?? 'none') }
    const history = (await this.#reference.histories([runId])).get(runId) ?? []
    switch (drawn.type) {
      case 'checkpoint':
        return { type: 'checkpoint', ...fence, entries: this.#entries(history, drawn.entries) }
      case 'settle': {
        const entries = this.#entries(history, drawn.entries)
        return { type: 'settle', ...fence, entries, settlement: this.#settlement(drawn) }
      }
      case 'perform': {
        const entry = outcome(history.length, { position: drawn.position, verb: 'perform', value: null })
        return { type: 'perform', ...fence, entry, action: this.#action(drawn.action) }
      }
      case 'wait': {
        const { position, key } = drawn
        const timers = drawn.entries.map((entry): DrawnEntry => ({ ...entry, type: 'timer', position }))
        return { type: 'wait', ...fence, position, key, entries: this.#entries(history, timers.slice(0, 1)) }
      }
      case 'expire':
        return { type: 'expire', ...fence, position: drawn.position }
    }
  }

  async #aim({ type, target }: Aimed): Promise<{ readonly runId: string; readonly run: RunRecord | undefined }> {
    const runs = (await this.#reference.runs(IDS)).filter((run) => run !== undefined)
    const movable = runs.filter((run) => target.aimed && canMove(type, run))
    const run = movable[IDS.indexOf(target.id) % movable.length] ?? runs.find(({ id }) => id === target.id)
    return { runId: run?.id ?? target.id, run }
  }

  #newRun(drawn: DrawnRun): NewRun {
    const { directFor, input, byName, delayMs, parentId, put, ...fields } = drawn
    const direct = directFor !== null && fields.queue === null
    return newRun(fields.id, {
      ...fields,
      kind: byName ? null : 'workflow',
      dedup: fields.queue === null ? null : fields.dedup,
      due: direct || delayMs === null ? null : { type: 'after', ms: delayMs },
      parentId: parentId === fields.id ? null : parentId,
      kv: put === null ? [] : [{ type: 'put', ...put, hash: `#${put.value}` }],
      claim: direct ? newClaim(this.name('token'), { owner: directFor, leaseMs: LEASE_MS }) : null,
      input: `${input}`,
      inputHash: `#${input}`,
    })
  }

  /** Follows the history; one time in two, its last entry is sent again, with effects that must not be applied. */
  #entries(history: readonly NewCheckpoint[], drawn: readonly DrawnEntry[]): readonly NewCheckpoint[] {
    const fresh = drawn.map(({ type, position, failed, effects }, n) =>
      outcome(history.length + n, {
        type,
        position,
        failed: failed && type === 'outcome',
        value: `"${this.name('value')}"`,
        effects: effects.map((effect) => this.#effect(effect)),
      }),
    )
    const last = history.at(-1)
    if (last === undefined || this.#names % 2 === 0) return fresh
    const again = outcome(last.seq, last)
    return [{ ...again, effects: [{ type: 'put', key: 'k', value: '"again"', hash: '#again' }] }, ...fresh]
  }

  #effect(drawn: DrawnEffect): Effect {
    switch (drawn.type) {
      case 'put':
        return { type: 'put', ...drawn.put, hash: `#${drawn.put.value}` }
      case 'delete':
        return drawn
      default:
        return this.#action(drawn)
    }
  }

  #action(drawn: Extract<DrawnEffect, { readonly type: 'signal' | 'start' }>) {
    return drawn.type === 'start'
      ? ({ type: 'start', run: this.#newRun(drawn.run) } as const)
      : ({ type: 'signal', key: drawn.key, payload: this.name('payload') } as const)
  }

  #settlement({ settlement, inMs, children }: Extract<CommitOperation, { readonly type: 'settle' }>): Settlement {
    const text = this.name('value')
    switch (settlement) {
      case 'succeed':
        return { type: settlement, output: text }
      case 'suspend': {
        const awaited = children.map((runId, position) => ({ position, runId }))
        return { type: settlement, wakeAt: inMs === null ? null : this.#clock.now() + inMs, children: awaited }
      }
      case 'release':
        return { type: settlement }
      default:
        return { type: settlement, failure: { kind: 'permanent', error: text } }
    }
  }
}

function canMove(type: Aimed['type'], run: RunRecord): boolean {
  if (type === 'requeue') return isTerminal(run.status) && run.status !== 'SUCCESS'
  return type === 'cancel' ? !isTerminal(run.status) && !run.cancelRequested : run.status === 'PENDING'
}

function toChange({ change, put, expected }: Extract<CommitOperation, { readonly type: 'kv' }>): KvChange {
  const { key, value } = put
  switch (change) {
    case 'put':
      return { type: 'put', key, value, hash: `#${value}` }
    case 'putIf':
      return { type: 'putIf', key, value, hash: `#${value}`, expected }
    case 'delete':
      return { type: 'delete', key }
    case 'deleteIf':
      return { type: 'deleteIf', key, expected: expected ?? '#1' }
  }
}
