/**
 * Everything that a process writes goes through here: many callers' commands share transactions (commit-lane), and
 * claims and leases have lanes of their own, so that a claim that waits for a lock delays no checkpoint and nothing
 * delays a renewal.
 *
 * Guarantees: every call settles exactly once, with the outcome of its own command; commands of one run are applied in
 * the order given; a store that is unavailable is asked again, with the same command, until it answers or the
 * committer is closed; nothing is dropped, and no rejection is left unhandled but the caller's own.
 */
import { StoreClosedError } from '../../core/errors.ts'
import { invariant } from '../../core/invariant.ts'
import type { Random } from '../../core/random.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import type {
  ClaimOutcome,
  ClaimRequest,
  Command,
  HeldClaim,
  NewQueue,
  Outcome,
  OutcomeOf,
  QueueChange,
  ReclaimOutcome,
  ReclaimRequest,
  RenewOutcome,
  SqlAccess,
  Store,
  SweepOutcome,
  SweepRequest,
  TransactOutcome,
  TransactRequest,
} from '../../store/contract.ts'
import type { EncodedValue, ProcessRecord, QueueRecord } from '../../store/records.ts'
import { CommitLane } from './commit-lane.ts'
import type { LaneName, ResenderOptions, Trouble } from './resend.ts'
import { SerialLane } from './serial-lane.ts'

export type { Trouble } from './resend.ts'

/** What the committer uses of a store. */
export type WritableStore = Pick<
  Store,
  | 'name'
  | 'commit'
  | 'claim'
  | 'renew'
  | 'reclaim'
  | 'sweep'
  | 'registerQueues'
  | 'changeQueue'
  | 'registerProcess'
  | 'removeProcesses'
  | 'transactions'
>

export interface CommitterOptions {
  readonly store: WritableStore
  readonly scheduler: Scheduler
  readonly random: Random
  /** Called when a lane finds the store unavailable, every 30 s while it stays so, and when it is back. */
  readonly onTrouble: (trouble: Trouble) => void
}

const CLOSE_WITHIN_MS = 5_000

export class Committer {
  readonly #store: WritableStore
  readonly #scheduler: Scheduler
  readonly #commits: CommitLane
  readonly #claims: SerialLane
  readonly #leases: SerialLane
  /** Ways to give up transactions of users that are open. */
  readonly #transactions = new Set<(error: unknown) => void>()
  readonly #whenIdle: (() => void)[] = []
  #closing: Promise<void> | null = null

  constructor({ store, scheduler, random, onTrouble }: CommitterOptions) {
    this.#store = store
    this.#scheduler = scheduler
    const lane = (name: LaneName): ResenderOptions => ({ lane: name, scheduler, random, onTrouble })
    const settled = (): void => this.#settled()
    this.#commits = new CommitLane(store, lane('commit'), settled)
    this.#claims = new SerialLane(lane('claim'), settled)
    this.#leases = new SerialLane(lane('lease'), settled)
  }

  /**
   * Resolves with the outcome of the command once it is committed. Rejects with what the database says if it refuses
   * this very command (and with the same for commands of the same run and token that were given meanwhile:
   * a history has no gaps), and with StoreClosedError after `close`.
   */
  submit<C extends Command>(command: C): Promise<OutcomeOf<C>> {
    if (this.#closing !== null) return Promise.reject(this.#closedError())
    return new Promise<OutcomeOf<C>>((resolve, reject) => {
      // By contract a store answers each command with its own kind of outcome.
      this.#commits.add({ command, resolve: resolve as (outcome: Outcome) => void, reject })
    })
  }

  /**
   * Opens a transaction of a user's once all that was given before for its run is stored. It is in no lane: nothing
   * waits for it, not even what is given for its run meanwhile; the fence, which both pass, decides between them (a
   * cancellation must not wait for a body). Rejects with what the store rejects with: nothing is sent again.
   */
  transact(request: TransactRequest, body: (sql: SqlAccess) => Promise<EncodedValue>): Promise<TransactOutcome> {
    const { transactions } = this.#store
    if (this.#closing !== null) return Promise.reject(this.#closedError())
    invariant(transactions !== undefined, 'only stores with SQL are asked for a transaction')
    return new Promise((resolve, reject) => {
      this.#transactions.add(reject)
      const opened = this.#commits
        .settled(request.runId, request.token)
        .then(() => transactions.transact(request, body))
      // Whoever is answered finds the transaction gone from `pending`.
      const leave = (): void => void this.#transactions.delete(reject)
      opened
        .finally(leave)
        .then(resolve, reject)
        .finally(() => this.#settled())
    })
  }

  claim(request: ClaimRequest): Promise<ClaimOutcome> {
    return this.#in(this.#claims, () => this.#store.claim(request))
  }

  reclaim(request: ReclaimRequest): Promise<ReclaimOutcome> {
    return this.#in(this.#claims, () => this.#store.reclaim(request))
  }

  sweep(request: SweepRequest): Promise<SweepOutcome> {
    return this.#in(this.#claims, () => this.#store.sweep(request))
  }

  registerQueues(queues: readonly NewQueue[]): Promise<readonly QueueRecord[]> {
    return this.#in(this.#claims, () => this.#store.registerQueues(queues))
  }

  changeQueue(name: string, change: QueueChange): Promise<QueueRecord | undefined> {
    return this.#in(this.#claims, () => this.#store.changeQueue(name, change))
  }

  removeProcesses(owners: readonly string[]): Promise<void> {
    return this.#in(this.#claims, () => this.#store.removeProcesses(owners))
  }

  registerProcess(process: Omit<ProcessRecord, 'registeredAt'>): Promise<void> {
    return this.#in(this.#leases, () => this.#store.registerProcess(process))
  }

  renew(claims: readonly HeldClaim[], leaseMs: number): Promise<RenewOutcome> {
    return this.#in(this.#leases, () => this.#store.renew(claims, leaseMs))
  }

  /** Calls without an answer, of all lanes. */
  pending(): number {
    return this.#commits.pending + this.#claims.pending + this.#leases.pending + this.#transactions.size
  }

  /** Those of `pending` that take as long as a function of a user's does. */
  get transactions(): number {
    return this.#transactions.size
  }

  /** Grows with every command and every call of the store. */
  activity(): number {
    return this.#commits.activity + this.#claims.activity + this.#leases.activity
  }

  /** Resolves once no call is without an answer. */
  idle(): Promise<void> {
    if (this.pending() === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /**
   * Accepts nothing more and resolves once all that was accepted has an answer; what has none `withinMs` later (real
   * time) is rejected with StoreClosedError: whether it was applied is then unknown. Idempotent; the first call's bound holds.
   */
  close(withinMs: number = CLOSE_WITHIN_MS): Promise<void> {
    this.#closing ??= this.#close(withinMs)
    return this.#closing
  }

  async #close(withinMs: number): Promise<void> {
    if (this.pending() === 0) return
    const bound = this.#scheduler.after(withinMs, () => {
      for (const lane of [this.#commits, this.#claims, this.#leases]) lane.abandon(this.#closedError(lane.lastError))
      for (const giveUp of this.#transactions) giveUp(this.#closedError())
      this.#transactions.clear()
      this.#settled()
    })
    await this.idle()
    bound.cancel()
  }

  #in<T>(lane: SerialLane, attempt: () => Promise<T>): Promise<T> {
    return this.#closing === null ? lane.run(attempt) : Promise.reject(this.#closedError())
  }

  #closedError(cause?: unknown): StoreClosedError {
    return new StoreClosedError({ store: this.#store.name }, cause === undefined ? undefined : { cause })
  }

  #settled(): void {
    if (this.#whenIdle.length === 0 || this.pending() > 0) return
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }
}
