/** One conformance test's world: an empty database, a clock, and short ways to say what the tests say often. */
import assert from 'node:assert/strict'
import type { Clock, EpochMs } from '../../core/clock.ts'
import type {
  Action,
  CancelOutcome,
  ClaimedRun,
  ClaimOutcome,
  Command,
  EnqueueOutcome,
  FencedOutcome,
  KvChange,
  KvOutcome,
  NewCheckpoint,
  NewQueue,
  NewRun,
  Outcome,
  OutcomeOf,
  PerformOutcome,
  QueueChange,
  ReclaimedRun,
  RequeueOutcome,
  Settlement,
  SignalOutcome,
  Store,
  SweepOutcome,
  SweepRequest,
  WaitOutcome,
} from '../contract.ts'
import type { CheckpointRecord, Ending, QueueRecord, RunRecord, WaitRecord } from '../records.ts'
import { newClaim, newRun, numbered, SUCCEED } from './makers.ts'
import { ManualClock } from './manual-clock.ts'
import { settled } from './settled.ts'
import { assertClaim, type ClaimFields, claimRequest, newQueue } from './sources.ts'

/** A database that a test may fill; nothing else uses it. */
export interface ConformanceDatabase {
  /** A store object over it, not opened yet. A store that isn't shared gives the same object each time. */
  connect(): Store
  /** Removes the database, when every store over it has been closed. */
  destroy(): Promise<void>
}

/** Declares a test that gets a world of its own. */
export type Test = (name: string, body: (world: World) => Promise<void>) => void

interface WaitFields {
  readonly position?: number
  readonly key?: string
  /** Its timer. */
  readonly entries?: readonly NewCheckpoint[]
}

const WAIT_OUTCOMES = ['waiting', 'signalled', 'expired', 'taken', 'claimLost']
const OUTCOMES: Readonly<Record<Command['type'], readonly string[]>> = {
  enqueue: ['accepted', 'mismatch', 'deduplicated'],
  checkpoint: ['applied', 'claimLost'],
  settle: ['applied', 'claimLost'],
  perform: ['performed', 'refused', 'claimLost'],
  wait: WAIT_OUTCOMES,
  expire: WAIT_OUTCOMES,
  cancel: ['cancelled', 'requested', 'notCancelled'],
  requeue: ['requeued', 'notRequeued'],
  signal: ['delivered', 'buffered', 'replaced'],
  kv: ['kv'],
}

export class World {
  readonly clock: ManualClock
  readonly store: Store
  readonly #database: ConformanceDatabase
  readonly #stores = new Set<Store>()
  #commands = 0

  private constructor(clock: ManualClock, database: ConformanceDatabase) {
    this.clock = clock
    this.#database = database
    this.store = this.connect()
  }

  static async open(create: (clock: Clock) => Promise<ConformanceDatabase>): Promise<World> {
    const clock = new ManualClock()
    const world = new World(clock, await create(clock))
    await world.store.open()
    return world
  }

  async close(): Promise<void> {
    for (const store of this.#stores) await store.close()
    await this.#database.destroy()
  }

  /** A store over the same database, not opened yet; closed with the world. */
  connect(): Store {
    const store = this.#database.connect()
    this.#stores.add(store)
    return store
  }

  /** A command id that was not used before. */
  commandId(): string {
    this.#commands += 1
    return `command-${this.#commands}`
  }

  async commit<C extends Command>(command: C, store: Store = this.store): Promise<OutcomeOf<C>> {
    const outcomes = await settled(await store.commit([command]))
    assert.equal(outcomes.length, 1, 'one outcome for one command')
    const [outcome] = outcomes
    assert.ok(outcome !== undefined && answers(command, outcome), `no outcome of '${command.type}': ${outcome?.type}`)
    return outcome
  }

  /** Commits all of them, in as many transactions as the store makes of them. */
  async commitAll(commands: readonly Command[], store: Store = this.store): Promise<readonly Outcome[]> {
    const outcomes: Outcome[] = []
    while (outcomes.length < commands.length) {
      const rest = commands.slice(outcomes.length)
      const answered = await store.commit(rest)
      assert.ok(answered.length >= 1 && answered.length <= rest.length, 'at least one outcome, at most one a command')
      outcomes.push(...(await settled(answered)))
    }
    return outcomes
  }

  enqueue(...runs: readonly (string | NewRun)[]): Promise<EnqueueOutcome> {
    const newRuns = runs.map((run) => (typeof run === 'string' ? newRun(run) : run))
    return this.commit({ type: 'enqueue', commandId: this.commandId(), runs: newRuns })
  }

  /** Records a run and claims it in the same commit. */
  async start(id: string, token: string, run: Partial<NewRun> = {}): Promise<void> {
    await this.enqueue(newRun(id, { claim: newClaim(token), ...run }))
  }

  async claimOutcome(
    tokens: readonly string[],
    fields: ClaimFields = {},
    store: Store = this.store,
  ): Promise<ClaimOutcome> {
    const request = claimRequest(tokens, fields)
    const outcome = await store.claim(request)
    assertClaim(request, outcome, this.clock.now())
    return outcome
  }

  async claim(tokens: readonly string[], fields: ClaimFields = {}, store?: Store): Promise<readonly ClaimedRun[]> {
    return (await this.claimOutcome(tokens, fields, store)).runs
  }

  /** The ids of the runs that these tokens are given. */
  async claimIds(tokens: readonly string[], fields: ClaimFields = {}, store?: Store): Promise<readonly string[]> {
    return (await this.claim(tokens, fields, store)).map(({ run }) => run.id)
  }

  /** The ids of the runs that so many fresh tokens are given. */
  claimUpTo(count: number, fields: ClaimFields = {}, store?: Store): Promise<readonly string[]> {
    return this.claimIds(numbered(this.commandId(), count), fields, store)
  }

  /** When time alone may make something claimable; nothing is now. */
  async nextAt(fields: ClaimFields = {}, store?: Store): Promise<EpochMs | null> {
    const { runs, nextAt } = await this.claimOutcome([this.commandId()], fields, store)
    assert.deepEqual(runs, [], 'nothing is claimable now')
    return nextAt
  }

  checkpoint(runId: string, token: string, entries: readonly NewCheckpoint[]): Promise<FencedOutcome> {
    return this.commit({ type: 'checkpoint', runId, token, entries })
  }

  settle(
    runId: string,
    token: string,
    settlement: Settlement,
    entries: readonly NewCheckpoint[] = [],
  ): Promise<FencedOutcome> {
    return this.commit({ type: 'settle', runId, token, entries, settlement })
  }

  /** Settles under the live claim of the run, whoever has it. */
  async finish(runId: string, settlement: Settlement = SUCCEED): Promise<FencedOutcome> {
    return this.settle(runId, (await this.run(runId)).token ?? '', settlement)
  }

  perform(runId: string, token: string, entry: NewCheckpoint, action: Action): Promise<PerformOutcome> {
    return this.commit({ type: 'perform', runId, token, entry: { ...entry, value: null, failed: false }, action })
  }

  wait(
    runId: string,
    token: string,
    { position = 0, key = 'approval', entries = [] }: WaitFields = {},
  ): Promise<WaitOutcome> {
    return this.commit({ type: 'wait', runId, token, position, key, entries })
  }

  expire(runId: string, token: string, position = 0): Promise<WaitOutcome> {
    return this.commit({ type: 'expire', runId, token, position })
  }

  signal(key: string, payload: string, commandId: string = this.commandId()): Promise<SignalOutcome> {
    return this.commit({ type: 'signal', commandId, key, payload })
  }

  cancel(runId: string, commandId: string = this.commandId()): Promise<CancelOutcome> {
    return this.commit({ type: 'cancel', commandId, runId })
  }

  requeue(runId: string, commandId: string = this.commandId()): Promise<RequeueOutcome> {
    return this.commit({ type: 'requeue', commandId, runId })
  }

  /** Whether it was applied. */
  async kv(change: KvChange, commandId: string = this.commandId()): Promise<boolean> {
    const { applied }: KvOutcome = await this.commit({ type: 'kv', commandId, change })
    return applied
  }

  /** What a key holds. */
  async value(key: string): Promise<string | undefined> {
    const [value] = await this.store.values([key])
    return value
  }

  /** Takes all claims whose lease has ended, and those of `deadOwners`. */
  async reclaim(deadOwners: readonly string[] = []): Promise<readonly ReclaimedRun[]> {
    return (await this.store.reclaim({ deadOwners, limit: 1_000 })).runs
  }

  /** Sweeps until nothing is left to remove now: a store may do less in one call than it is asked for. */
  async sweep(
    definitions: SweepRequest['definitions'],
    limit = 1_000,
    store: Store = this.store,
  ): Promise<SweepOutcome> {
    const { removed, nextAt } = await store.sweep({ definitions, limit })
    assert.ok(removed <= limit, 'at most as many as asked for')
    if (nextAt === null || nextAt > this.clock.now()) return { removed, nextAt }
    const rest = await this.sweep(definitions, limit, store)
    return { removed: removed + rest.removed, nextAt: rest.nextAt }
  }

  /** Registers a queue; answers with what holds then. */
  async register(name: string, knobs: Partial<NewQueue> = {}): Promise<QueueRecord> {
    const [queue, ...others] = await this.store.registerQueues([newQueue(name, knobs)])
    assert.ok(queue !== undefined && others.length === 0)
    return queue
  }

  async configure(name: string, change: QueueChange): Promise<QueueRecord> {
    const queue = await this.store.changeQueue(name, change)
    assert.ok(queue !== undefined, `queue ${name} is there`)
    return queue
  }

  async run(id: string): Promise<RunRecord> {
    const [run] = await this.store.runs([id])
    assert.ok(run !== undefined, `run ${id} is there`)
    return run
  }

  async ending(id: string): Promise<Ending | 'missing' | undefined> {
    return (await this.store.endings([id])).get(id)
  }

  async history(id: string): Promise<readonly CheckpointRecord[]> {
    return (await this.store.histories([id])).get(id) ?? []
  }

  /** What it waits for, as `explain` is told. */
  async waits(id: string): Promise<readonly WaitRecord[]> {
    return (await this.store.situation(id))?.waits ?? []
  }

  /** Everything that can be seen of a run, to show that something changed nothing. */
  async everythingOf(id: string): Promise<unknown> {
    const [run] = await this.store.runs([id])
    const [input] = await this.store.inputs([id])
    return {
      run,
      input,
      ending: await this.ending(id),
      history: await this.history(id),
      attempts: await this.store.attempts(id),
      waits: await this.waits(id),
    }
  }
}

function answers<C extends Command>({ type }: C, outcome: Outcome): outcome is OutcomeOf<C> {
  return OUTCOMES[type].includes(outcome.type)
}

/** Asserts that a record has these fields, types included. */
export function assertHas<T extends object>(record: T, fields: Partial<T>): void {
  const found = Object.fromEntries(Object.entries(record).filter(([key]) => key in fields))
  assert.deepEqual(found, fields)
}
