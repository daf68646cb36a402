/**
 * What the model test does to a store, drawn without knowing its state. Few names and few values, so that commands
 * meet; model-script.ts makes them concrete by what the reference holds, so that most of them hit something.
 */
import type fc from 'fast-check'
import type { NewDedup, QueueChange, Settlement } from '../contract.ts'
import type { QueueKnobs, Retention } from '../records.ts'

export const IDS: readonly string[] = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
export const OWNERS: readonly string[] = ['worker-1', 'worker-2', 'worker-3']
/** How many runs of one lane an owner takes at most: it is configured once, and then stays. */
export const LANE_LIMITS: Readonly<Record<string, number | null>> = { 'worker-1': null, 'worker-2': 1, 'worker-3': 2 }
export const DEFINITIONS = ['x', 'y'] as const
export const QUEUES = ['plain', 'lanes'] as const
export const POSITIONS = [0, 1, 2] as const
const SIGNALS = ['s', 't'] as const
const KEYS = ['k', 'l'] as const
const VALUES = ['1', '2'] as const

/** A run: one that the command can move, if it is `aimed` and there is one, otherwise the one of this id. */
export interface Target {
  readonly id: string
  readonly aimed: boolean
}
export interface DrawnRun {
  readonly id: string
  readonly definition: string
  readonly input: number
  readonly queue: string | null
  readonly priority: number
  readonly partitionKey: string | null
  readonly dedup: NewDedup | null
  readonly delayMs: number | null
  readonly byName: boolean
  readonly parentId: string | null
  readonly timeoutMs: number | null
  readonly maxRecoveries: number
  readonly put: DrawnPut | null
  /** Claimed at once by this owner, and so without a queue. */
  readonly directFor: string | null
}
interface DrawnPut {
  readonly key: string
  readonly value: string
}
export type DrawnEffect =
  | { readonly type: 'put'; readonly put: DrawnPut }
  | { readonly type: 'delete'; readonly key: string }
  | { readonly type: 'signal'; readonly key: string }
  | { readonly type: 'start'; readonly run: DrawnRun }
export interface DrawnEntry {
  readonly type: 'outcome' | 'timer'
  readonly position: number
  readonly failed: boolean
  readonly effects: readonly DrawnEffect[]
}
interface Fenced {
  readonly target: Target
  readonly stale: boolean
}
interface Recording extends Fenced {
  readonly entries: readonly DrawnEntry[]
}
export type CommitOperation =
  | { readonly type: 'start'; readonly runs: readonly DrawnRun[] }
  | ({ readonly type: 'checkpoint' } & Recording)
  | ({
      readonly type: 'settle'
      readonly settlement: Settlement['type']
      readonly inMs: number | null
      readonly children: readonly string[]
    } & Recording)
  | ({
      readonly type: 'perform'
      readonly position: number
      readonly action: Extract<DrawnEffect, { readonly type: 'signal' | 'start' }>
    } & Fenced)
  | ({ readonly type: 'wait'; readonly position: number; readonly key: string } & Recording)
  | ({ readonly type: 'expire'; readonly position: number } & Fenced)
  | { readonly type: 'cancel' | 'requeue'; readonly target: Target }
  | { readonly type: 'signal'; readonly key: string }
  | {
      readonly type: 'kv'
      readonly change: 'put' | 'putIf' | 'delete' | 'deleteIf'
      readonly put: DrawnPut
      readonly expected: string | null
    }
export interface DrawnSource {
  readonly queue: string | null
  readonly room: number
}
export type Operation =
  | CommitOperation
  | { readonly type: 'batch'; readonly operations: readonly CommitOperation[] }
  | { readonly type: 'resend'; readonly back: number }
  | {
      readonly type: 'claim'
      readonly owner: string
      readonly count: number
      readonly definitions: readonly string[]
      readonly version: string | null
      readonly sources: readonly DrawnSource[]
    }
  | { readonly type: 'claimAgain' }
  | { readonly type: 'renew'; readonly ids: readonly string[] }
  | { readonly type: 'reclaim'; readonly deadOwners: readonly string[] }
  | {
      readonly type: 'registerQueue'
      readonly name: string
      readonly configVersion: number
      readonly knobs: QueueKnobs
    }
  | { readonly type: 'changeQueue'; readonly name: string; readonly change: QueueChange }
  | {
      readonly type: 'sweep'
      readonly definitions: readonly { readonly name: string; readonly retention: Retention | null }[]
    }
  | { readonly type: 'register' | 'remove'; readonly owner: string }
  | { readonly type: 'pass'; readonly ms: number }
  | { readonly type: 'reopen' }

const DAY_MS = 24 * 3_600_000

/** Draws operations. */
export function operation(check: typeof fc): fc.Arbitrary<Operation> {
  const commit = commitOperation(check)
  const owner = check.constantFrom(...OWNERS)
  const name = check.constantFrom(...QUEUES)
  return check.oneof(
    weighted(24, commit),
    weighted(6, record(check, 'batch', { operations: check.array(commit, { maxLength: 6 }) })),
    weighted(4, record(check, 'resend', { back: check.nat(6) })),
    weighted(14, claims(check)),
    weighted(2, record(check, 'claimAgain', {})),
    weighted(2, record(check, 'renew', { ids: check.subarray([...IDS]) })),
    weighted(3, record(check, 'reclaim', { deadOwners: check.subarray([...OWNERS]) })),
    weighted(
      3,
      record(check, 'registerQueue', { name, configVersion: check.nat(2), knobs: check.record(knobs(check)) }),
    ),
    weighted(3, record(check, 'changeQueue', { name, change: changes(check) })),
    weighted(2, sweeps(check)),
    weighted(1, check.record({ type: check.constantFrom('register', 'remove'), owner })),
    weighted(6, record(check, 'pass', { ms: check.constantFrom(1, 1_000, 4_000, 9_999, 10_000, 60_000, DAY_MS + 1) })),
    weighted(1, record(check, 'reopen', {})),
  )
}

function commitOperation(check: typeof fc): fc.Arbitrary<CommitOperation> {
  const run = runs(check)
  const effect = effects(check, run)
  const target = check.record({ id: check.constantFrom(...IDS), aimed: rarely(check, false, true) })
  const fenced = { target, stale: rarely(check, true, false) }
  const entry = check.record({
    type: rarely(check, 'timer', 'outcome'),
    position: check.constantFrom(...POSITIONS),
    failed: check.boolean(),
    effects: check.array(effect, { maxLength: 2 }),
  })
  const recording = { ...fenced, entries: check.array(entry, { maxLength: 2 }) }
  const position = check.constantFrom(...POSITIONS)
  const key = check.constantFrom(...SIGNALS)
  return check.oneof(
    weighted(9, record(check, 'start', { runs: check.array(run, { minLength: 1, maxLength: 3 }) })),
    weighted(4, record(check, 'checkpoint', recording)),
    weighted(9, record(check, 'settle', { ...recording, ...settlements(check) })),
    weighted(4, record(check, 'perform', { ...fenced, position, action: actions(check, run) })),
    weighted(6, record(check, 'wait', { ...recording, position, key })),
    weighted(2, record(check, 'expire', { ...fenced, position })),
    weighted(2, record(check, 'cancel', { target })),
    weighted(3, record(check, 'requeue', { target })),
    weighted(4, record(check, 'signal', { key })),
    weighted(3, kvChanges(check)),
  )
}

function runs(check: typeof fc): fc.Arbitrary<DrawnRun> {
  return check.record({
    id: check.constantFrom(...IDS),
    definition: rarely(check, 'y', 'x'),
    input: rarely(check, 1, 0),
    queue: check.constantFrom(null, ...QUEUES),
    priority: check.constantFrom(0, 0, -1, 1),
    partitionKey: check.constantFrom(null, 'eu', 'us'),
    dedup: check.constantFrom(null, null, { id: 'd', policy: 'reject' }, { id: 'd', policy: 'returnExisting' }),
    delayMs: check.constantFrom(null, null, 0, 1_000, 10_000),
    byName: check.boolean(),
    parentId: check.constantFrom(null, ...IDS),
    timeoutMs: check.constantFrom(null, 5_000, 100_000),
    maxRecoveries: check.constantFrom(0, 1, 50),
    put: rarely(check, { key: 'k', value: '1' }, null),
    directFor: check.constantFrom(null, null, ...OWNERS),
  })
}

function effects(check: typeof fc, run: fc.Arbitrary<DrawnRun>): fc.Arbitrary<DrawnEffect> {
  return check.oneof(
    record(check, 'put', { put: puts(check) }),
    record(check, 'delete', { key: check.constantFrom(...KEYS) }),
    actions(check, run),
  )
}

function actions(check: typeof fc, run: fc.Arbitrary<DrawnRun>) {
  return check.oneof(record(check, 'signal', { key: check.constantFrom(...SIGNALS) }), record(check, 'start', { run }))
}

function puts(check: typeof fc): fc.Arbitrary<DrawnPut> {
  return check.record({ key: check.constantFrom(...KEYS), value: check.constantFrom(...VALUES) })
}

function kvChanges(check: typeof fc) {
  return record(check, 'kv', {
    change: check.constantFrom('put', 'putIf', 'delete', 'deleteIf'),
    put: puts(check),
    expected: check.constantFrom(null, ...VALUES.map((value) => `#${value}`)),
  })
}

function settlements(check: typeof fc) {
  const types: readonly Settlement['type'][] = [
    'succeed',
    'fail',
    'dead',
    'cancel',
    'release',
    'suspend',
    'suspend',
    'suspend',
  ]
  return {
    settlement: check.constantFrom(...types),
    inMs: check.constantFrom(null, -1, 0, 4_000, 50_000),
    children: check.subarray([...IDS], { maxLength: 2 }),
  }
}

function claims(check: typeof fc) {
  const source = check.record({
    queue: check.constantFrom(null, ...QUEUES, ...QUEUES),
    room: check.constantFrom(0, 1, 3, 100),
  })
  return record(check, 'claim', {
    owner: check.constantFrom(...OWNERS),
    count: check.integer({ min: 0, max: 4 }),
    definitions: check.constantFrom(DEFINITIONS, DEFINITIONS, DEFINITIONS, ['x'], ['y'], []),
    version: check.constantFrom(null, null, 'v1', 'v2'),
    sources: check.uniqueArray(source, { minLength: 1, maxLength: 3, selector: ({ queue }) => queue }),
  })
}

function knobs(check: typeof fc): { readonly [Knob in keyof QueueKnobs]: fc.Arbitrary<QueueKnobs[Knob]> } {
  return {
    globalConcurrency: check.constantFrom(null, 1, 2),
    releaseWhileWaiting: check.boolean(),
    rateLimit: check.constantFrom(null, null, { limit: 1, periodMs: 4_000 }, { limit: 2, periodMs: 10_000 }),
    priorityEnabled: check.boolean(),
    partitioned: check.boolean(),
    retention: retentions(check),
  }
}

function changes(check: typeof fc): fc.Arbitrary<QueueChange> {
  const fields = { ...knobs(check), paused: check.boolean(), configVersion: check.nat(2) }
  return check.record(fields, { requiredKeys: [] })
}

function retentions(check: typeof fc): fc.Arbitrary<Retention | null> {
  const span = check.constantFrom(null, 0, 1_000, 60_000)
  return check.option(check.record({ success: span, error: span, dead: span, cancelled: span }))
}

function sweeps(check: typeof fc) {
  const definition = check.record({ name: check.constantFrom(...DEFINITIONS), retention: retentions(check) })
  return record(check, 'sweep', { definitions: check.uniqueArray(definition, { selector: ({ name }) => name }) })
}

function record<const Type extends string, Fields>(
  check: typeof fc,
  type: Type,
  fields: { readonly [Key in keyof Fields]: fc.Arbitrary<Fields[Key]> },
): fc.Arbitrary<{ readonly type: Type } & Fields> {
  return check.record(fields).map((drawn) => ({ type, ...drawn }))
}

function weighted<T>(weight: number, arbitrary: fc.Arbitrary<T>): fc.WeightedArbitrary<T> {
  return { weight, arbitrary }
}

function rarely<const R, const U>(check: typeof fc, rare: R, usual: U): fc.Arbitrary<R | U> {
  return check.oneof({ weight: 1, arbitrary: check.constant(rare) }, { weight: 9, arbitrary: check.constant(usual) })
}
