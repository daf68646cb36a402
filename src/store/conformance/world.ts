/** One conformance test's world: an empty database, a clock, and short ways to say what the tests say often. */
import assert from 'node:assert/strict'
import type { Clock } from '../../core/clock.ts'
import type { ClaimedRun, ClaimRequest, Command, NewClaim, NewRun, Outcome, Settlement, Store } from '../contract.ts'
import type { CheckpointRecord, Ending, NewCheckpoint, RunRecord } from '../records.ts'
import { ManualClock } from './manual-clock.ts'

/** A database that a test may fill; nothing else uses it. */
export interface ConformanceDatabase {
  /** A store object over it, not opened yet. A store that isn't shared gives the same object each time. */
  connect(): Store
  /** Removes the database, when every store over it has been closed. */
  destroy(): Promise<void>
}

/** Declares a test that gets a world of its own. */
export type Test = (name: string, body: (world: World) => Promise<void>) => void

export const LEASE_MS = 30_000
export const OWNER = 'worker-1'
export const DEFINITION = 'charge'

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

  async commit(command: Command): Promise<Outcome> {
    const outcomes = await this.store.commit([command])
    assert.equal(outcomes.length, 1, 'one outcome for one command')
    const [outcome] = outcomes
    assert.ok(outcome !== undefined)
    return outcome
  }

  /** Commits all of them, in as many transactions as the store makes of them. */
  async commitAll(commands: readonly Command[], store: Store = this.store): Promise<readonly Outcome[]> {
    const outcomes: Outcome[] = []
    while (outcomes.length < commands.length) {
      const rest = commands.slice(outcomes.length)
      const answered = await store.commit(rest)
      assert.ok(answered.length >= 1 && answered.length <= rest.length, 'at least one outcome, at most one a command')
      outcomes.push(...answered)
    }
    return outcomes
  }

  enqueue(...runs: readonly (string | NewRun)[]): Promise<Outcome> {
    const newRuns = runs.map((run) => (typeof run === 'string' ? newRun(run) : run))
    return this.commit({ type: 'enqueue', commandId: this.commandId(), runs: newRuns })
  }

  /** Records a run and claims it in the same commit. */
  async start(id: string, token: string, run: Partial<NewRun> = {}): Promise<void> {
    await this.enqueue(newRun(id, { claim: newClaim(token), ...run }))
  }

  claim(tokens: readonly string[], request: Partial<ClaimRequest> = {}): Promise<readonly ClaimedRun[]> {
    return this.store.claim({ owner: OWNER, tokens, leaseMs: LEASE_MS, definitions: [DEFINITION], ...request })
  }

  /** The ids of the runs that these tokens are given. */
  async claimIds(tokens: readonly string[], request: Partial<ClaimRequest> = {}): Promise<readonly string[]> {
    return (await this.claim(tokens, request)).map(({ run }) => run.id)
  }

  checkpoint(runId: string, token: string, entries: readonly NewCheckpoint[]): Promise<Outcome> {
    return this.commit({ type: 'checkpoint', runId, token, entries })
  }

  settle(
    runId: string,
    token: string,
    settlement: Settlement,
    entries: readonly NewCheckpoint[] = [],
  ): Promise<Outcome> {
    return this.commit({ type: 'settle', runId, token, entries, settlement })
  }

  cancel(runId: string, commandId: string = this.commandId()): Promise<Outcome> {
    return this.commit({ type: 'cancel', commandId, runId })
  }

  requeue(runId: string, commandId: string = this.commandId()): Promise<Outcome> {
    return this.commit({ type: 'requeue', commandId, runId })
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
    }
  }
}

export function newRun(id: string, run: Partial<NewRun> = {}): NewRun {
  return {
    id,
    definition: DEFINITION,
    kind: 'workflow',
    queue: null,
    input: `{"order":"${id}"}`,
    inputHash: `hash of ${id}`,
    maxRecoveries: 50,
    timeoutMs: null,
    claim: null,
    ...run,
  }
}

export function newClaim(token: string, claim: Partial<NewClaim> = {}): NewClaim {
  return { token, owner: OWNER, leaseMs: LEASE_MS, ...claim }
}

/** A step's outcome at `seq`. */
export function outcome(seq: number, entry: Partial<NewCheckpoint> = {}): NewCheckpoint {
  return {
    seq,
    type: 'outcome',
    position: seq,
    verb: 'step',
    name: `step ${seq}`,
    failed: false,
    value: `"value ${seq}"`,
    calls: seq + 1,
    delivered: seq,
    notes: null,
    attempts: 1,
    ...entry,
  }
}

export const SUCCEED: Settlement = { type: 'succeed', output: '"done"' }
export const RELEASE: Settlement = { type: 'release' }
export const CLAIM_LOST: Outcome = { type: 'claimLost' }

/** The outcome of a fenced command that left its run PENDING, unless told otherwise. */
export function applied(fields: Partial<Extract<Outcome, { readonly type: 'applied' }>> = {}): Outcome {
  return { type: 'applied', status: 'PENDING', ending: null, cancelRequested: false, ...fields }
}

/** Asserts that a record has these fields, types included. */
export function assertHas<T extends object>(record: T, fields: Partial<T>): void {
  const found = Object.fromEntries(Object.entries(record).filter(([key]) => key in fields))
  assert.deepEqual(found, fields)
}
