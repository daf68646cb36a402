/**
 * What the model test does to a store. An operation is drawn without knowing the state; `toCall` makes it concrete
 * by what the reference holds, so that most operations hit something, and the same call goes to both stores.
 */
import type fc from 'fast-check'
import type { Command, HeldClaim, NewRun, Settlement, Store } from '../contract.ts'
import type { NewCheckpoint, RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import type { ManualClock } from './manual-clock.ts'
import { newClaim, newRun, outcome } from './world.ts'

export const IDS = ['a', 'b', 'c', 'd', 'e', 'f'] as const
export const OWNERS = ['worker-1', 'worker-2'] as const
export const DEFINITIONS = ['x', 'y'] as const
const LEASE_MS = 10_000

/** A run: one that the command can move, if it is `aimed` and there is one, otherwise the one of this id. */
interface Target {
  readonly id: (typeof IDS)[number]
  readonly aimed: boolean
}
interface DrawnRun {
  readonly id: string
  readonly definition: string
  readonly input: number
  readonly queue: string | null
  readonly timeoutMs: number | null
  readonly maxRecoveries: number
  /** Claimed at once by this owner. */
  readonly directFor: string | null
}
type DrawnSettlement = Settlement['type']
type CommitOperation =
  | { readonly type: 'start'; readonly runs: readonly DrawnRun[] }
  | {
      readonly type: 'checkpoint'
      readonly target: Target
      readonly stale: boolean
      readonly entries: readonly boolean[]
    }
  | {
      readonly type: 'settle'
      readonly target: Target
      readonly stale: boolean
      readonly entries: readonly boolean[]
      readonly settlement: DrawnSettlement
      readonly inMs: number
    }
  | { readonly type: 'cancel'; readonly target: Target }
  | { readonly type: 'requeue'; readonly target: Target }
export type Operation =
  | CommitOperation
  | { readonly type: 'batch'; readonly operations: readonly CommitOperation[] }
  | { readonly type: 'resend'; readonly back: number }
  | { readonly type: 'claim'; readonly owner: string; readonly count: number; readonly definitions: readonly string[] }
  | { readonly type: 'claimAgain' }
  | { readonly type: 'renew'; readonly ids: readonly string[] }
  | { readonly type: 'reclaim'; readonly deadOwners: readonly string[] }
  | { readonly type: 'register' | 'remove'; readonly owner: string }
  | { readonly type: 'pass'; readonly ms: number }
  | { readonly type: 'reopen' }

/** Sent to both stores; what it resolves to is compared. */
export type Call = (store: Store) => Promise<unknown>

export function operation(check: typeof fc): fc.Arbitrary<Operation> {
  const commit = commitOperation(check)
  const owner = check.constantFrom(...OWNERS)
  return check.oneof(
    weighted(12, commit),
    weighted(3, check.record({ type: check.constant('batch'), operations: check.array(commit, { maxLength: 6 }) })),
    weighted(2, check.record({ type: check.constant('resend'), back: check.nat(6) })),
    weighted(
      6,
      check.record({
        type: check.constant('claim'),
        owner,
        count: check.integer({ min: 1, max: 3 }),
        definitions: check.constantFrom(DEFINITIONS, DEFINITIONS, ['x'], ['y'], []),
      }),
    ),
    weighted(1, check.record({ type: check.constant('claimAgain') })),
    weighted(1, check.record({ type: check.constant('renew'), ids: check.subarray([...IDS]) })),
    weighted(2, check.record({ type: check.constant('reclaim'), deadOwners: check.subarray([...OWNERS]) })),
    weighted(1, check.record({ type: check.constantFrom('register', 'remove'), owner })),
    weighted(
      3,
      check.record({ type: check.constant('pass'), ms: check.constantFrom(1, 4_000, 9_999, 10_000, 60_000) }),
    ),
    weighted(1, check.record({ type: check.constant('reopen') })),
  )
}

function commitOperation(check: typeof fc): fc.Arbitrary<CommitOperation> {
  const id = check.constantFrom(...IDS)
  const target = check.record({ id, aimed: rarely(check, false, true) })
  const entries = check.array(check.boolean(), { maxLength: 3 })
  const stale = rarely(check, true, false)
  const run = check.record({
    id,
    definition: rarely(check, 'y', 'x'),
    input: rarely(check, 1, 0),
    queue: rarely(check, 'media', null),
    timeoutMs: check.constantFrom(null, 5_000, 100_000),
    maxRecoveries: check.constantFrom(0, 1, 50),
    directFor: check.constantFrom(null, null, ...OWNERS),
  })
  const settlements: readonly DrawnSettlement[] = ['succeed', 'fail', 'dead', 'cancel', 'suspend', 'suspend', 'release']
  return check.oneof(
    weighted(
      4,
      check.record({ type: check.constant('start'), runs: check.array(run, { minLength: 1, maxLength: 3 }) }),
    ),
    weighted(3, check.record({ type: check.constant('checkpoint'), target, stale, entries })),
    weighted(
      5,
      check.record({
        type: check.constant('settle'),
        target,
        stale,
        entries,
        settlement: check.constantFrom(...settlements),
        inMs: check.constantFrom(-1, 0, 4_000, 50_000),
      }),
    ),
    weighted(1, check.record({ type: check.constant('cancel'), target })),
    weighted(2, check.record({ type: check.constant('requeue'), target })),
  )
}

function weighted<T>(weight: number, arbitrary: fc.Arbitrary<T>): fc.WeightedArbitrary<T> {
  return { weight, arbitrary }
}

function rarely<const R, const U>(check: typeof fc, rare: R, usual: U): fc.Arbitrary<R | U> {
  return check.oneof({ weight: 1, arbitrary: check.constant(rare) }, { weight: 9, arbitrary: check.constant(usual) })
}

/** Makes operations concrete, by the state of the reference and by what was sent before. */
export class Script {
  readonly #clock: ManualClock
  readonly #reference: Store
  readonly #sent: Command[][] = []
  #lastClaim: Call = async () => []
  #names = 0

  constructor(clock: ManualClock, reference: Store) {
    this.#clock = clock
    this.#reference = reference
  }

  async toCall(drawn: Operation): Promise<Call> {
    switch (drawn.type) {
      case 'batch':
        return this.#commit(await this.#independent(drawn.operations))
      case 'resend':
        return commitOf(this.#sent.at(-1 - drawn.back) ?? [])
      case 'claim':
        return this.#claim(drawn)
      case 'claimAgain':
        return this.#lastClaim
      case 'renew':
        return this.#renew(drawn.ids)
      case 'reclaim':
        return async (store) => {
          const taken = await store.reclaim({ deadOwners: drawn.deadOwners, limit: 1_000 })
          return taken.toSorted((a, b) => (a.id < b.id ? -1 : 1))
        }
      case 'register':
        return (store) =>
          store.registerProcess({
            owner: drawn.owner,
            host: 'h',
            pid: 1,
            pidStart: null,
            bootId: null,
            pidNamespace: null,
          })
      case 'remove':
        return (store) => store.removeProcesses([drawn.owner])
      case 'pass':
        this.#clock.pass(drawn.ms)
        return async () => null
      case 'reopen':
        return async (store) => {
          await store.close()
          await store.open()
        }
      default:
        return this.#commit([await this.#command(drawn)])
    }
  }

  #name(what: string): string {
    this.#names += 1
    return `${what} ${this.#names}`
  }

  /** At most one command for a run in a batch, as the committer promises. */
  async #independent(operations: readonly CommitOperation[]): Promise<readonly Command[]> {
    const commands: Command[] = []
    const taken = new Set<string>()
    for (const drawn of operations) {
      const command = await this.#command(drawn)
      const ids = command.type === 'enqueue' ? command.runs.map(({ id }) => id) : [command.runId]
      if (ids.some((id) => taken.has(id))) continue
      for (const id of ids) taken.add(id)
      commands.push(command)
    }
    return commands
  }

  #commit(commands: readonly Command[]): Call {
    this.#sent.push([...commands])
    return commitOf(commands)
  }

  async #command(drawn: CommitOperation): Promise<Command> {
    if (drawn.type === 'start') {
      const runs = drawn.runs.map((run) => this.#newRun(run))
      return { type: 'enqueue', commandId: this.#name('start'), runs }
    }
    const run = await this.#aim(drawn)
    const runId = run?.id ?? drawn.target.id
    if (drawn.type === 'cancel' || drawn.type === 'requeue') {
      return { type: drawn.type, commandId: this.#name(drawn.type), runId }
    }
    const token = drawn.stale ? 'stale' : (run?.token ?? 'none')
    const entries = await this.#entries(runId, drawn.entries)
    if (drawn.type === 'checkpoint') return { type: 'checkpoint', runId, token, entries }
    const settlement = settlementOf(drawn.settlement, this.#clock.now() + drawn.inMs, this.#name('value'))
    return { type: 'settle', runId, token, entries, settlement }
  }

  async #aim({ type, target }: Exclude<CommitOperation, { readonly type: 'start' }>): Promise<RunRecord | undefined> {
    const runs = (await this.#reference.runs(IDS)).filter((run) => run !== undefined)
    const movable = runs.filter((run) => target.aimed && canMove(type, run))
    return movable[IDS.indexOf(target.id) % movable.length] ?? runs.find(({ id }) => id === target.id)
  }

  #newRun({ id, definition, input, queue, timeoutMs, maxRecoveries, directFor }: DrawnRun): NewRun {
    const claim = directFor === null ? null : newClaim(this.#name('token'), { owner: directFor, leaseMs: LEASE_MS })
    return newRun(id, { definition, queue, timeoutMs, maxRecoveries, claim, input: `${input}`, inputHash: `#${input}` })
  }

  /** Follows the history; one time in two, the first entry is sent again. */
  async #entries(id: string, failed: readonly boolean[]): Promise<readonly NewCheckpoint[]> {
    const history = (await this.#reference.histories([id])).get(id) ?? []
    const last = this.#names % 2 === 0 ? undefined : history.at(-1)
    const fresh = failed.map((failure, n) =>
      outcome(history.length + n, { failed: failure, value: `"${this.#name('value')}"` }),
    )
    if (last === undefined) return fresh
    const { recordedAt: _, ...again } = last
    return [again, ...fresh]
  }

  #claim(drawn: Extract<Operation, { readonly type: 'claim' }>): Call {
    const tokens = Array.from({ length: drawn.count }, () => this.#name('token'))
    const request = { owner: drawn.owner, tokens, leaseMs: LEASE_MS, definitions: drawn.definitions }
    this.#lastClaim = async (store) =>
      (await store.claim(request)).map(({ run, ...rest }) => ({ ...rest, run: withoutSeq(run) }))
    return this.#lastClaim
  }

  async #renew(ids: readonly string[]): Promise<Call> {
    const runs = await this.#reference.runs(ids)
    const claims = ids.map((runId, n): HeldClaim => ({ runId, token: runs[n]?.token ?? 'none' }))
    return async (store) => {
      const { lost, cancelRequested } = await store.renew(claims, LEASE_MS)
      return { lost: lost.toSorted(), cancelRequested: cancelRequested.toSorted() }
    }
  }
}

function canMove(type: 'checkpoint' | 'settle' | 'cancel' | 'requeue', run: RunRecord): boolean {
  if (type === 'requeue') return isTerminal(run.status) && run.status !== 'SUCCESS'
  return type === 'cancel' ? !isTerminal(run.status) && !run.cancelRequested : run.status === 'PENDING'
}

/** A store may number runs with gaps; that the order is the same is seen in its lists and claims. */
export function withoutSeq({ seq: _, ...run }: RunRecord): Omit<RunRecord, 'seq'> {
  return run
}

function commitOf(commands: readonly Command[]): Call {
  return async (store) => {
    const outcomes = []
    while (outcomes.length < commands.length) outcomes.push(...(await store.commit(commands.slice(outcomes.length))))
    return outcomes
  }
}

function settlementOf(type: DrawnSettlement, wakeAt: number, text: string): Settlement {
  switch (type) {
    case 'succeed':
      return { type, output: text }
    case 'suspend':
      return { type, wakeAt }
    case 'release':
      return { type }
    default:
      return { type, failure: { kind: 'permanent', error: text } }
  }
}
