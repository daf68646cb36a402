/** Makes drawn operations concrete, by the state of the reference and by what was sent before: one call for both stores. */
import type {
  ClaimedRun,
  ClaimOutcome,
  ClaimRequest,
  ClaimSource,
  Command,
  HeldClaim,
  Outcome,
  Store,
  SweepOutcome,
  SweepRequest,
} from '../contract.ts'
import type { RunRecord } from '../records.ts'
import { newProcess } from './makers.ts'
import type { ManualClock } from './manual-clock.ts'
import { Commands } from './model-commands.ts'
import type { CommitOperation, DrawnSource, Operation } from './model-operations.ts'
import { LANE_LIMITS } from './model-operations.ts'
import { settled } from './settled.ts'
import { claimRequest } from './sources.ts'

const LEASE_MS = 10_000

/** Sent to both stores; what it resolves to is compared. */
export type Call = (store: Store) => Promise<unknown>

export class Script {
  readonly #clock: ManualClock
  readonly #reference: Store
  readonly #commands: Commands
  readonly #sent: Command[][] = []
  #lastClaim: Call = async () => []

  constructor(clock: ManualClock, reference: Store) {
    this.#clock = clock
    this.#reference = reference
    this.#commands = new Commands(clock, reference)
  }

  async toCall(drawn: Operation): Promise<Call> {
    switch (drawn.type) {
      case 'batch':
        return this.#commit(await this.#independent(drawn.operations))
      case 'resend':
        return resendOf(this.#sent.at(-1 - drawn.back) ?? [])
      case 'claim':
        return this.#claim(drawn)
      case 'claimAgain':
        return this.#lastClaim
      case 'renew':
        return this.#renew(drawn.ids)
      case 'reclaim':
        return this.#reclaim(drawn.deadOwners)
      case 'registerQueue':
        return (store) =>
          store.registerQueues([{ name: drawn.name, configVersion: drawn.configVersion, ...drawn.knobs }])
      case 'changeQueue':
        return (store) => store.changeQueue(drawn.name, drawn.change)
      case 'sweep':
        return (store) => sweepAll(store, drawn.definitions)
      case 'register':
        return (store) => store.registerProcess(newProcess(drawn.owner))
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
        return this.#commit([await this.#commands.of(drawn)])
    }
  }

  /** At most one command for a run, deduplication id, signal or key in a batch, as the committer promises. */
  async #independent(operations: readonly CommitOperation[]): Promise<readonly Command[]> {
    const commands: Command[] = []
    const taken = new Set<string>()
    for (const drawn of operations) {
      const command = await this.#commands.of(drawn)
      const names = namesIn(command)
      if (names.some((name) => taken.has(name))) continue
      for (const name of names) taken.add(name)
      commands.push(command)
    }
    return commands
  }

  #commit(commands: readonly Command[]): Call {
    this.#sent.push([...commands])
    return async (store) => (await answersOf(store, commands)).map(comparable)
  }

  async #claim(drawn: Extract<Operation, { readonly type: 'claim' }>): Promise<Call> {
    const tokens = Array.from({ length: drawn.count }, () => this.#commands.name('token'))
    const { owner, version, definitions } = drawn
    const sources = await Promise.all(drawn.sources.map((source) => this.#source(source, owner)))
    const request = claimRequest(tokens, { owner, version, definitions, sources })
    this.#lastClaim = async (store) => {
      const { runs, nextAt } = await store.claim(request)
      // In which order those are answered that were claimed before is left open.
      return claimOf(request, { runs: runs.toSorted((a, b) => (a.token < b.token ? -1 : 1)), nextAt })
    }
    return async (store) => claimOf(request, await store.claim(request))
  }

  /** A process knows what it has: stores may rely on it. */
  async #source({ queue, room }: DrawnSource, owner: string): Promise<ClaimSource> {
    const limit = LANE_LIMITS[owner] ?? null
    if (queue === null || limit === null) return { queue, room, leaseMs: LEASE_MS, lanes: null }
    const running = new Map<string, number>()
    for (const run of await this.#reference.list({ queue, status: ['PENDING'], limit: 100 })) {
      if (run.owner !== owner || run.lane === null) continue
      running.set(run.lane, (running.get(run.lane) ?? 0) + 1)
    }
    return { queue, room, leaseMs: LEASE_MS, lanes: { limit, running } }
  }

  /** In which order claims are taken is left open, and shows if one of the runs takes another along to its end. */
  async #reclaim(deadOwners: readonly string[]): Promise<Call> {
    const now = this.#clock.now()
    const taken = (await this.#reference.list({ status: ['PENDING'], limit: 100 })).filter(({ owner, leaseUntil }) => {
      return (owner !== null && deadOwners.includes(owner)) || (leaseUntil ?? 0) <= now
    })
    if (taken.length > 1 && taken.some(({ cancelRequested }) => cancelRequested)) return async () => null
    return async (store) => {
      const { runs, rippled } = await store.reclaim({ deadOwners, limit: 1_000 })
      return { runs: runs.toSorted((a, b) => (a.id < b.id ? -1 : 1)), rippled }
    }
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

/** A store may do less in one call than it is asked for. */
async function sweepAll(store: Store, definitions: SweepRequest['definitions']): Promise<SweepOutcome> {
  for (let all = 0; ; ) {
    const { removed, nextAt } = await store.sweep({ definitions, limit: 1_000 })
    all += removed
    if (nextAt === null || nextAt > store.clock.now()) return { removed: all, nextAt }
  }
}

/** What a command is about, for the rule of batches. */
function namesIn(command: Command): readonly string[] {
  switch (command.type) {
    case 'enqueue':
      return command.runs.flatMap(namesOfStart)
    case 'signal':
      return [`signal ${command.key}`]
    case 'kv':
      return [`key ${command.change.key}`]
    case 'cancel':
    case 'requeue':
    case 'expire':
      return [`run ${command.runId}`]
    case 'perform':
      return [`run ${command.runId}`, ...namesOf([command.action])]
    case 'wait':
      return [`run ${command.runId}`, `signal ${command.key}`, ...namesOfEntries(command)]
    default:
      return [`run ${command.runId}`, ...namesOfEntries(command)]
  }
}

type Entries = Extract<Command, { readonly entries: unknown }>['entries']

function namesOfEntries({ entries }: { readonly entries: Entries }): readonly string[] {
  return entries.flatMap(({ effects }) => namesOf(effects ?? []))
}

function namesOf(effects: NonNullable<Entries[number]['effects']>): readonly string[] {
  return effects.flatMap((effect) => {
    if (effect.type === 'start') return namesOfStart(effect.run)
    return [effect.type === 'signal' ? `signal ${effect.key}` : `key ${effect.key}`]
  })
}

function namesOfStart({
  id,
  dedup,
  kv,
}: Extract<Command, { readonly type: 'enqueue' }>['runs'][number]): readonly string[] {
  return [`run ${id}`, ...(dedup === null ? [] : [`dedup ${dedup.id}`]), ...kv.map(({ key }) => `key ${key}`)]
}

async function answersOf(store: Store, commands: readonly Command[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = []
  while (outcomes.length < commands.length) {
    outcomes.push(...(await settled(await store.commit(commands.slice(outcomes.length)))))
  }
  return outcomes
}

/**
 * One by one, and a rejection is an answer: an old command may say something else of an entry than what was recorded
 * meanwhile. Whether a resend rippled again is left open.
 */
function resendOf(commands: readonly Command[]): Call {
  return async (store) => {
    const answers = []
    for (const command of commands) {
      const answer = await answersOf(store, [command]).catch(() => 'rejected' as const)
      answers.push(answer === 'rejected' ? answer : answer.map(comparable))
    }
    return answers
  }
}

/** Delayed runs that are due may be promoted early or late: until they are claimed, the two are one. */
function comparable(outcome: Outcome): Outcome {
  if (outcome.type === 'accepted') {
    return { ...outcome, runs: outcome.runs.map((run) => ({ ...run, status: promoted(run.status) })) }
  }
  if (outcome.type === 'notRequeued' && outcome.status !== null) return { ...outcome, status: promoted(outcome.status) }
  return outcome
}

function promoted(status: RunRecord['status']): RunRecord['status'] {
  return status === 'DELAYED' ? 'ENQUEUED' : status
}

/** Whether an instant is told while the claimant itself has no room or tokens for more is left open. */
function claimOf({ tokens, sources }: ClaimRequest, { runs, nextAt }: ClaimOutcome): unknown {
  const hasRoom = sources.every(({ queue, room, lanes }) => {
    return lanes === null && runs.filter(({ run }) => run.queue === queue).length < room
  })
  return {
    runs: runs.map(({ run, ...rest }: ClaimedRun) => ({ ...rest, run: comparableRow(run, 0) })),
    nextAt: hasRoom && runs.length < tokens.length ? nextAt : 'left open',
  }
}

/**
 * A store may number runs with gaps: that the order is the same is seen in its lists and claims. How it names the
 * start of a follow-up is its own affair.
 */
export function comparableRow(run: RunRecord, now: number): Omit<RunRecord, 'seq' | 'startId'> {
  const { seq: _, startId: __, ...row } = run
  if (row.status !== 'DELAYED' || row.dueAt === null || row.dueAt > now) return row
  return { ...row, status: 'ENQUEUED', dueAt: null }
}
