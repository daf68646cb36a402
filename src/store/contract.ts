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
import type {
  AttemptRecord,
  CheckpointRecord,
  DefinitionKind,
  EncodedValue,
  Ending,
  Failure,
  NewCheckpoint,
  ProcessRecord,
  RunRecord,
  RunStatus,
} from './records.ts'

export interface NewRun {
  readonly id: string
  readonly definition: string
  readonly kind: DefinitionKind
  readonly queue: string | null
  readonly input: EncodedValue
  readonly inputHash: string
  readonly maxRecoveries: number
  readonly timeoutMs: number | null
  /** A direct start: recorded and claimed in one commit. */
  readonly claim: NewClaim | null
}

export interface NewClaim {
  readonly token: string
  readonly owner: string
  readonly leaseMs: number
}

// ── The commit lane ─────────────────────────────────────────────────────────────────────────────────────────────

/** Accepts runs, all or none of them. Keys: the ids of the runs. */
export interface EnqueueCommand {
  readonly type: 'enqueue'
  readonly commandId: string
  readonly runs: readonly NewRun[]
}
/** `mismatch`: `id` exists under another definition or with another input; nothing of the command is stored. */
export type EnqueueOutcome =
  | { readonly type: 'accepted'; readonly runs: readonly AcceptedRun[] }
  | { readonly type: 'mismatch'; readonly id: string; readonly definition: string }
/** `created: false`: the run existed already, with the same definition and input. */
export interface AcceptedRun {
  readonly id: string
  readonly created: boolean
  readonly status: RunStatus
}

/**
 * Appends to a run's history. An entry that is there already at its `seq` is a resend and applied; one that is there
 * as another is refused, by a rejection: a recorded outcome never changes, and none is lost in silence.
 */
export interface CheckpointCommand {
  readonly type: 'checkpoint'
  readonly runId: string
  readonly token: string
  readonly entries: readonly NewCheckpoint[]
}

/**
 * Ends a delivery. A run whose cancellation was requested ends CANCELLED, whatever the settlement says; the
 * `entries` are recorded all the same (they are steps that did run).
 */
export interface SettleCommand {
  readonly type: 'settle'
  readonly runId: string
  readonly token: string
  readonly entries: readonly NewCheckpoint[]
  readonly settlement: Settlement
}
export type Settlement =
  | { readonly type: 'succeed'; readonly output: EncodedValue }
  /** ERROR: the function's own verdict. */
  | { readonly type: 'fail'; readonly failure: Failure }
  /** DEAD: dead-lettered. */
  | { readonly type: 'dead'; readonly failure: Failure }
  | { readonly type: 'cancel'; readonly failure: Failure }
  /** WAITING until `wakeAt`, or the deadline of the run if that is earlier. */
  | { readonly type: 'suspend'; readonly wakeAt: EpochMs }
  /** Handed back: ENQUEUED at its old place, no attempt spent. */
  | { readonly type: 'release' }

/** Of a fenced command. `claimLost`: the run is not PENDING under this token; nothing was changed. */
export type FencedOutcome =
  | {
      readonly type: 'applied'
      readonly status: RunStatus
      /** What the run ended with, if this very command ended it (null when it is a resend). */
      readonly ending: Ending | null
      /** The run is still PENDING and has been asked to cancel. */
      readonly cancelRequested: boolean
    }
  | { readonly type: 'claimLost' }

/** Cancels a run: at once, unless it is PENDING, which is asked to end. */
export interface CancelCommand {
  readonly type: 'cancel'
  readonly commandId: string
  readonly runId: string
}
/** `refused`: unknown, already terminal, or already requested (`status` says which; null: unknown). */
export type CancelOutcome =
  | { readonly type: 'cancelled' }
  | { readonly type: 'requested'; readonly owner: string | null; readonly token: string | null }
  | { readonly type: 'refused'; readonly status: RunStatus | null }

/** Makes an ERROR, DEAD or CANCELLED run claimable again, at its old place, in a new epoch. */
export interface RequeueCommand {
  readonly type: 'requeue'
  readonly commandId: string
  readonly runId: string
}
export type RequeueOutcome =
  | { readonly type: 'requeued' }
  | { readonly type: 'refused'; readonly status: RunStatus | null }

export type Command = EnqueueCommand | CheckpointCommand | SettleCommand | CancelCommand | RequeueCommand
export type OutcomeOf<C extends Command> = C extends EnqueueCommand
  ? EnqueueOutcome
  : C extends CheckpointCommand | SettleCommand
    ? FencedOutcome
    : C extends CancelCommand
      ? CancelOutcome
      : RequeueOutcome
export type Outcome = EnqueueOutcome | FencedOutcome | CancelOutcome | RequeueOutcome

// ── The claim lane ──────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Claims at most as many runs as `tokens` has, of the definitions named, from the internal queue: first suspended
 * runs that are due, by their due instant, then enqueued ones in order of `seq`. A run already held under one of the
 * tokens is answered again (a resend), before new ones are claimed.
 */
export interface ClaimRequest {
  readonly owner: string
  readonly tokens: readonly string[]
  readonly leaseMs: number
  readonly definitions: readonly string[]
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
export interface ReclaimedRun {
  readonly id: string
  readonly token: string
  readonly owner: string | null
  readonly status: RunStatus
  readonly ending: Ending | null
}

// ── Reads ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ListRequest {
  readonly status?: readonly RunStatus[]
  readonly definition?: string
  readonly limit: number
  /** Runs after this `seq`, in descending order of it: the newest first. Unset: from the newest. */
  readonly beforeSeq?: number
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

export interface Store {
  /** What messages call it: 'memory', 'sqlite app.db'. */
  readonly name: string
  readonly capabilities: StoreCapabilities
  readonly clock: Clock
  /** Moves a store that nobody has opened yet to another clock. Throws ConfigurationError otherwise. */
  setClock(clock: Clock): void

  /** Connects and brings the schema up to date; safe when many processes do so at once. Idempotent. */
  open(): Promise<void>
  /** Lets go of every connection, timer and thread. A closed store can be opened again. */
  close(): Promise<void>

  /**
   * Applies a batch in one transaction. A store that bounds its time in one transaction may stop early: the answer
   * then covers the commands up to there (at least one), and the rest was not tried.
   */
  commit(commands: readonly Command[]): Promise<readonly Outcome[]>
  claim(request: ClaimRequest): Promise<readonly ClaimedRun[]>
  renew(claims: readonly HeldClaim[], leaseMs: number): Promise<RenewOutcome>
  reclaim(request: ReclaimRequest): Promise<readonly ReclaimedRun[]>
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
  /**
   * When the next run of these definitions becomes claimable: now or earlier if one is ENQUEUED; null: none by time.
   */
  nextDue(definitions: readonly string[]): Promise<EpochMs | null>
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
