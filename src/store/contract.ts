/**
 * What a store does: domain commands, each atomic and fenced, never `update(row)`.
 *
 * Writes come in batches: one call is one transaction, and every command of it has an outcome of its own. The
 * caller (runtime/committer) sends at most one command for a key in a batch, resends a batch whose outcome it never
 * learned, and splits a batch that a store refuses. In return a store promises:
 *
 * - A batch is applied whole, or not at all: when `commit` rejects, nothing of it is stored, unless the error says
 *   that the outcome is unknown.
 * - Commands of a batch are independent: one that is refused (a lost claim, a mismatch) changes nothing and hinders
 *   no other.
 * - A resent command recognises itself and answers as it did the first time.
 * - A fenced command changes nothing unless its run is PENDING under exactly its token.
 * - What it acknowledges is on disk, if the store is durable.
 * - Every instant is read from the store's clock inside the transaction, after its locks.
 *
 * Errors: `StoreUnavailableError` for trouble that passes (busy, connection lost): try again later. Any other
 * rejection means that the database refuses some command of the batch: split it to find which.
 */
import type { Clock, EpochMs } from '../core/clock.ts'
import type { ClaimLostOutcome, Command, EnqueueOutcome, NewCheckpoint, NewRun, Outcome } from './commands.ts'
import type {
  AttemptRecord,
  CheckpointRecord,
  DefinitionKind,
  EncodedValue,
  Ending,
  KvRecord,
  ProcessRecord,
  QueueKnobs,
  QueueRecord,
  Retention,
  RunRecord,
  RunStatus,
  WaitRecord,
} from './records.ts'

export type * from './commands.ts'

// ── The commit lane ─────────────────────────────────────────────────────────────────────────────────────────────

/**
 * What `commit` answers to one command. `blocked`: somebody else's transaction holds what the command needs, so it goes
 * on by itself, while the rest is committed; `outcome` settles when it has got through, or rejects as `commit` would.
 */
export type CommitOutcome = Outcome | BlockedOutcome
export interface BlockedOutcome {
  readonly type: 'blocked'
  readonly outcome: Promise<Outcome>
}

// ── The claim lane ──────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Claims at most as many runs as `tokens` has, from all sources, within every limit of their queues, exactly. A run
 * already held under one of the tokens is answered again (a resend), before new ones are claimed.
 *
 * Order: first suspended runs that are due, by their due instant and then `seq`; then enqueued ones, one of each source
 * in turn: of a plain queue by `rank` and then `seq`, of a partitioned one a run of each lane in turn, the lane first
 * that has waited longest for its turn. Delayed runs that are due are promoted in the same transaction, and keep the
 * place that their `seq` gives them.
 */
export interface ClaimRequest {
  readonly owner: string
  readonly tokens: readonly string[]
  readonly definitions: readonly ClaimableDefinition[]
  /** Runs bound to another version are passed over, and the claimed ones bound to this one; null: no gate. */
  readonly version: string | null
  readonly sources: readonly ClaimSource[]
}
/** What a definition says of its runs, where the start did not know it (`NewRun.kind` is null). */
export interface ClaimableDefinition {
  readonly name: string
  readonly kind: DefinitionKind
  readonly maxRecoveries: number
  readonly timeoutMs: number | null
}
export interface ClaimSource {
  /** null: the internal queue, which knows no limits. */
  readonly queue: string | null
  readonly leaseMs: number
  /** At most so many of this queue in this call. */
  readonly room: number
  /**
   * Of a partitioned queue: how many runs of one lane this process may have, and how many it has of which. The limit of
   * an owner doesn't change, and it counts at least the claims that the store knows to be its own.
   */
  readonly lanes: { readonly limit: number; readonly running: ReadonlyMap<string, number> } | null
}
export interface ClaimOutcome {
  readonly runs: readonly ClaimedRun[]
  /** The next instant, not yet past, at which time alone may make a run of these sources claimable; null: none is known. */
  readonly nextAt: EpochMs | null
}
export interface ClaimedRun {
  readonly run: RunRecord
  readonly token: string
  readonly input: EncodedValue
}

// ── The lease lane ──────────────────────────────────────────────────────────────────────────────────────────────

export interface HeldClaim {
  readonly runId: string
  readonly token: string
}
export interface RenewOutcome {
  /** Tokens that hold nothing any more: stop, abort, write nothing. */
  readonly lost: readonly string[]
  /** Tokens whose run has been asked to cancel. */
  readonly cancelRequested: readonly string[]
}

/** Takes claims away: those whose lease has ended, and every claim of an owner known to be dead. */
export interface ReclaimRequest {
  readonly deadOwners: readonly string[]
  /** At most this many runs in one call. */
  readonly limit: number
}
export interface ReclaimOutcome {
  readonly runs: readonly ReclaimedRun[]
  /** Other runs were changed too (`AppliedOutcome.rippled`). */
  readonly rippled: boolean
}
export interface ReclaimedRun {
  readonly id: string
  readonly token: string
  readonly owner: string | null
  readonly status: RunStatus
  readonly ending: Ending | null
}

// ── Transactions of users ───────────────────────────────────────────────────────────────────────────────────────

export type IsolationLevel = 'read committed' | 'repeatable read' | 'serializable'

/** SQL of the user's in the store's own database, which is committed together with the record of it, or not at all. */
export interface SqlTransactions {
  /** Those that may be asked for; none: every transaction is serializable. */
  readonly isolationLevels: readonly IsolationLevel[]
  /**
   * Runs `body` in a transaction of its own, then, in the same one, records `entry` with the value that the body has
   * come to, under the fence, and commits. Nothing is written unless it is `performed`. A request whose entry is
   * recorded already is answered so, without its body: a commit whose answer was lost is never made again.
   *
   * Rejects with `StoreUnavailableError` if nothing has been tried, and with `StoreClosedError`.
   */
  transact(request: TransactRequest, body: (sql: SqlAccess) => Promise<EncodedValue>): Promise<TransactOutcome>
}

export interface TransactRequest extends HeldClaim {
  /** What messages call the transaction. */
  readonly name: string
  /** Its `value` is null, and is given by the body; `failed` is false. */
  readonly entry: NewCheckpoint
  /** null: the store's own default. */
  readonly isolationLevel: IsolationLevel | null
  /** Aborted: what is not committed yet is rolled back at once, with the signal's reason as the error. */
  readonly signal: AbortSignal
}

/** What a body reaches the database with, until it has settled or its transaction has ended. */
export interface SqlAccess {
  query(sql: string, params: readonly unknown[]): Promise<readonly SqlRow[]>
  run(sql: string, params: readonly unknown[]): Promise<{ readonly changes: number }>
  /** The driver's own object: a client of `pg`, a database of `better-sqlite3` or `node:sqlite`. */
  readonly native: unknown
}
/** By the names of the columns. */
export type SqlRow = Readonly<Record<string, unknown>>

export type TransactOutcome =
  | { readonly type: 'performed'; readonly value: EncodedValue; readonly cancelRequested: boolean }
  /**
   * `interfered`: not by what the body did but by other transactions, or by trouble of the database that passes: the
   * same may succeed in another transaction. `settled`: resolves when the body has ended, too.
   */
  | {
      readonly type: 'rolledBack'
      readonly error: unknown
      readonly interfered: boolean
      readonly settled: Promise<unknown>
    }
  | ClaimLostOutcome

// ── Queues and retention ────────────────────────────────────────────────────────────────────────────────────────

export interface NewQueue extends QueueKnobs {
  readonly name: string
  readonly configVersion: number
}
/** Unset: stays as it is. */
export type QueueChange = Partial<QueueKnobs> & { readonly paused?: boolean; readonly configVersion?: number }

/**
 * Removes runs that have ended for longer than their retention says, with all that belongs to them, at most `limit`;
 * also what the store keeps for resends, once no resend can come any more. A definition without a retention of its
 * own has that of the queue its run was in.
 */
export interface SweepRequest {
  readonly definitions: readonly { readonly name: string; readonly retention: Retention | null }[]
  readonly limit: number
}
/** `nextAt`: when the next of these runs is to be removed; now or earlier if some are left, null: none is known. */
export interface SweepOutcome {
  readonly removed: number
  readonly nextAt: EpochMs | null
}

// ── Reads ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ListRequest {
  readonly status?: readonly RunStatus[]
  readonly definition?: string
  readonly queue?: string
  readonly limit: number
  /** Runs after this `seq`, in descending order of it: the newest first. Unset: from the newest. */
  readonly beforeSeq?: number
}

/** Runs of a queue by what they do now. `keyless`: those that no partition key lets be dispatched, of `enqueued`. */
export interface QueueStats {
  readonly enqueued: number
  readonly delayed: number
  readonly pending: number
  readonly waiting: number
  readonly keyless: number
}

/** What decides whether a run may be claimed, in one consistent look. */
export interface Situation {
  readonly run: RunRecord
  /** null: it is on the internal queue, or on one that no engine has registered yet. */
  readonly queue: QueueRecord | null
  /** Runs that count against the global limit of its lane, if there is one: how many, and some of them, oldest first. */
  readonly active: number
  readonly holders: readonly string[]
  /** When the rate limit lets the next run of its lane start; null: now, or there is none. */
  readonly rateOpensAt: EpochMs | null
  /** Runs of its lane that go first, counted up to 1,000. */
  readonly ahead: number
  readonly waits: readonly WaitRecord[]
}

export interface StoreCapabilities {
  /** Survives the process that wrote it. */
  readonly durable: boolean
  /** Several processes may share it, so changes may come from outside. */
  readonly shared: boolean
}

/** Renews leases while the event loop of the process is blocked (a thread of its own, on a real clock). */
export interface LeaseThread {
  /** Renews these from now on, once a third of the lease; returns without waiting. */
  hold(claims: readonly HeldClaim[]): void
  drop(tokens: readonly string[]): void
  /** Resolves when the thread has ended and its connection is closed. */
  stop(): Promise<void>
}

// ── Starts in transactions of the caller's ───────────────────────────────────────────────────────────────────────

/** Starts runs in a transaction that the caller has begun and will end; they are there once it has been committed. */
export interface CallerStarts {
  /**
   * Accepts runs as an `enqueue` does, all or none of them. `tx` is what the caller runs statements through in the
   * transaction: rejects with ConfigurationError if it can't be used so, otherwise with what it throws.
   */
  start(tx: unknown, runs: readonly NewRun[], startId: string): Promise<EnqueueOutcome>
  /** The same of one run as a statement for any driver, which answers with a row `id, newly_submitted, conflict`. */
  sql(run: NewRun, startId: string, onConflict: 'tell' | 'raise'): SqlCall
}

export interface SqlCall {
  /** Each value has its placeholder once, in order: `$1`, `$2`, ... */
  readonly text: string
  readonly values: string[]
  /** What stands around the values, as the tag of a template is given it. */
  readonly strings: TemplateStringsArray
}

export interface Store {
  /** What messages call it: 'memory', 'sqlite app.db'. */
  readonly name: string
  readonly capabilities: StoreCapabilities
  readonly clock: Clock
  /** Moves a store that nobody has opened yet to another clock. Throws ConfigurationError otherwise. */
  setClock(clock: Clock): void
  /** undefined: the store has no SQL. */
  readonly transactions?: SqlTransactions
  /** undefined: the store is in no database that its callers have transactions in. */
  readonly callerStarts?: CallerStarts

  /** Connects and brings the schema up to date; safe when many processes do so at once. Idempotent. */
  open(): Promise<void>
  /** Lets go of every connection, timer and thread. A closed store can be opened again. */
  close(): Promise<void>
  /** Brings the schema up to date, without opening the store: for those who let another user do that. */
  migrate(): Promise<void>

  /**
   * Applies a batch in one transaction. A store that bounds its time in one transaction may stop early: the answer
   * then covers the commands up to there (at least one), and the rest was not tried.
   */
  commit(commands: readonly Command[]): Promise<readonly CommitOutcome[]>
  claim(request: ClaimRequest): Promise<ClaimOutcome>
  renew(claims: readonly HeldClaim[], leaseMs: number): Promise<RenewOutcome>
  reclaim(request: ReclaimRequest): Promise<ReclaimOutcome>
  sweep(request: SweepRequest): Promise<SweepOutcome>
  /**
   * Registers queues: writes those that are new, and those whose `configVersion` is not older than what is there.
   * Answers with what holds now, in the order given. What runs derive from a queue changes with it.
   */
  registerQueues(queues: readonly NewQueue[]): Promise<readonly QueueRecord[]>
  /** Changes a queue that is registered; undefined: it is not. */
  changeQueue(name: string, change: QueueChange): Promise<QueueRecord | undefined>
  registerProcess(process: Omit<ProcessRecord, 'registeredAt'>): Promise<void>
  /** Removes those that hold no claim any more; the others stay until theirs are reclaimed. */
  removeProcesses(owners: readonly string[]): Promise<void>

  processes(): Promise<readonly ProcessRecord[]>
  /** In the order asked; undefined where there is none. */
  runs(ids: readonly string[]): Promise<readonly (RunRecord | undefined)[]>
  inputs(ids: readonly string[]): Promise<readonly (EncodedValue | undefined)[]>
  /** Endings of those that have ended, or `missing` for those that don't exist; others are left out. */
  endings(ids: readonly string[]): Promise<ReadonlyMap<string, Ending | 'missing'>>
  list(request: ListRequest): Promise<readonly RunRecord[]>
  /** The histories of the current epochs, in order of `seq`. */
  histories(ids: readonly string[]): Promise<ReadonlyMap<string, readonly CheckpointRecord[]>>
  /** Oldest first; the last is the current one, if the run was ever claimed. */
  attempts(id: string): Promise<readonly AttemptRecord[]>
  /** Claims of this owner whose runs have been asked to cancel. */
  cancelRequests(owner: string): Promise<readonly HeldClaim[]>
  /** Payloads of waits that a signal has resolved; others are left out. In order of the request, by its index. */
  signals(
    waits: readonly { readonly runId: string; readonly position: number }[],
  ): Promise<ReadonlyMap<number, EncodedValue>>
  /** All registered queues, by name. */
  queues(): Promise<readonly QueueRecord[]>
  queueStats(name: string): Promise<QueueStats>
  /** undefined: no such run. */
  situation(id: string): Promise<Situation | undefined>
  /** Values of keys, in the order asked; undefined where there is none. */
  values(keys: readonly string[]): Promise<readonly (EncodedValue | undefined)[]>
  /** Keys that begin with `prefix`, in order of code points, after `after` (null: from the first). */
  scan(prefix: string, after: string | null, limit: number): Promise<readonly KvRecord[]>
  /** When the next lease ends; null: no claim is live. */
  nextExpiry(): Promise<EpochMs | null>

  /** Calls back when another process (or connection) has changed the store. Returns the way to stop. */
  watch(onChange: () => void): () => void
  /** A thread that renews leases, where the store has one and lives on a real clock; otherwise null. */
  leaseThread(options: LeaseThreadOptions): LeaseThread | null
}

export interface LeaseThreadOptions {
  readonly leaseMs: number
  /** The thread stops renewing when the event loop has been blocked for longer. */
  readonly maxBlockedMs: number
  /** Called on the main thread with what a round of renewal found. */
  readonly onRenewed: (outcome: RenewOutcome) => void
  /** Called once on the main thread if the thread has failed and renews nothing any more. */
  readonly onFailed: (error: unknown) => void
}
