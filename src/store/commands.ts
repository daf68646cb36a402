/**
 * The commands of the commit lane and what they answer. Each is atomic, answers for itself, and recognises itself
 * when it is sent again (store/contract.ts says what a store promises of a batch of them).
 */
import type { EpochMs } from '../core/clock.ts'
import type { CheckpointRecord, DefinitionKind, EncodedValue, Ending, Failure, RunStatus } from './records.ts'

// ── Starting runs ───────────────────────────────────────────────────────────────────────────────────────────────

export interface NewRun {
  readonly id: string
  readonly definition: string
  /** null: started by name alone; the first claim fills in what its definition says (`ClaimableDefinition`). */
  readonly kind: DefinitionKind | null
  readonly queue: string | null
  readonly priority: number
  readonly partitionKey: string | null
  readonly dedup: NewDedup | null
  /** When the run becomes claimable; null, or an instant that is past: at once. */
  readonly due: NewDue | null
  readonly input: EncodedValue
  readonly inputHash: string
  readonly maxRecoveries: number
  readonly timeoutMs: number | null
  /** The run that is cancelled together with this one; null: none, or a detached child. */
  readonly parentId: string | null
  /** Written to the KV space if, and only if, this command creates the run. */
  readonly kv: readonly KvPut[]
  /** A direct start: recorded and claimed in one commit. Only without a queue. */
  readonly claim: NewClaim | null
}

/** At most one run that has not ended holds an id in a queue. */
export interface NewDedup {
  readonly id: string
  readonly policy: 'reject' | 'returnExisting'
}

/** `after` counts from the store's own clock. */
export type NewDue =
  | { readonly type: 'after'; readonly ms: number }
  | { readonly type: 'at'; readonly instant: EpochMs }

export interface NewClaim {
  readonly token: string
  readonly owner: string
  readonly leaseMs: number
  readonly version: string | null
}

/**
 * Accepts runs, all or none of them. The id is looked at first, then the deduplication. Within one command the first
 * run of an id stands for the later ones, and the first of a deduplication id holds it: a later one is answered with it,
 * or refused, as its policy says.
 */
export interface EnqueueCommand {
  readonly type: 'enqueue'
  readonly commandId: string
  readonly runs: readonly NewRun[]
}
export type EnqueueOutcome = { readonly type: 'accepted'; readonly runs: readonly AcceptedRun[] } | Refusal
/** Why a start is refused; nothing of its command is stored. */
export type Refusal =
  /** `id` exists under another definition or with another input. */
  | { readonly type: 'mismatch'; readonly id: string; readonly definition: string }
  /** `holder` has the deduplication id that the run `id` asked for. */
  | {
      readonly type: 'deduplicated'
      readonly id: string
      readonly queue: string
      readonly dedupId: string
      readonly holder: string
    }
export interface AcceptedRun {
  /** That of the run asked for, or of the run that holds its deduplication id. */
  readonly id: string
  /** false: the run existed already. */
  readonly created: boolean
  readonly status: RunStatus
  /** What will not happen as its caller may think, by what the store knows of its queue now. */
  readonly caveat: StartCaveat | null
}
/** `keyless`: on a partitioned queue without a partition key, so never dispatched. The others say it all. */
export type StartCaveat = 'keyless' | 'partitionKeyIgnored' | 'priorityIgnored'

// ── Working on a claimed run ────────────────────────────────────────────────────────────────────────────────────

export type NewCheckpoint = Omit<CheckpointRecord, 'recordedAt'> & {
  /** Applied with the entry, once. */
  readonly effects?: readonly Effect[]
}

/**
 * Appends to a run's history. An entry that is there already at its `seq` is a resend and applied; one that is there
 * as another is refused, by a rejection: a recorded outcome never changes, and none is lost in silence. The effects of
 * an entry are applied with it, once: a resend has none.
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
  /**
   * WAITING until `wakeAt` (or the deadline of the run if that is earlier), until a signal comes for one of its open
   * waits, or until one of `children` ends. If any of that has happened already, it is due at once.
   */
  | { readonly type: 'suspend'; readonly wakeAt: EpochMs | null; readonly children: readonly AwaitedRun[] }
  /** Handed back: ENQUEUED at its old place, no attempt spent. */
  | { readonly type: 'release' }
export interface AwaitedRun {
  /** Of the durable call that waits. */
  readonly position: number
  readonly runId: string
}

/** Of a fenced command. `claimLost`: the run is not PENDING under this token; nothing was changed. */
export type FencedOutcome = AppliedOutcome | ClaimLostOutcome
export interface ClaimLostOutcome {
  readonly type: 'claimLost'
}
export interface AppliedOutcome {
  readonly type: 'applied'
  readonly status: RunStatus
  /** What the run ended with, if this very command ended it (null when it is a resend). */
  readonly ending: Ending | null
  /** The run is still PENDING and has been asked to cancel. */
  readonly cancelRequested: boolean
  /** When a run that is WAITING now becomes claimable by time; null: not by time, or it is not WAITING. */
  readonly dueAt: EpochMs | null
  /** Other runs were changed too: children cancelled, a parent woken, follow-ups started, signals delivered. */
  readonly rippled: boolean
  /** Follow-up runs among the effects that were refused, each for itself. */
  readonly refusals: readonly Refusal[]
}

/**
 * A durable call that the store itself carries out, recorded in the same transaction: `entry` gets the value that the
 * action has. Refused, it has recorded nothing.
 */
export interface PerformCommand {
  readonly type: 'perform'
  readonly runId: string
  readonly token: string
  /** Its `value` is null, and is given by the store; `failed` is false. */
  readonly entry: NewCheckpoint
  readonly action: Action
}
export type Action =
  /** Value: the JSON text of `{ id, created }`. */
  | { readonly type: 'start'; readonly run: NewRun }
  /** Value: the JSON text of 'delivered', 'buffered' or 'replaced'. */
  | { readonly type: 'signal'; readonly key: string; readonly payload: EncodedValue }
export type PerformOutcome =
  | { readonly type: 'performed'; readonly value: EncodedValue; readonly cancelRequested: boolean }
  | { readonly type: 'refused'; readonly refusal: Refusal }
  | ClaimLostOutcome

/**
 * Opens a run's wait for a signal at a position, or looks at the one that is open there already. A buffered signal of
 * the key is taken out of the buffer by the first wait that comes. `entries` (its timer) are recorded with it.
 *
 * A wait is open -> signalled | expired, and is removed by the entry that records the outcome of its position, and by
 * the end of its run.
 */
export interface WaitCommand {
  readonly type: 'wait'
  readonly runId: string
  readonly token: string
  readonly position: number
  readonly key: string
  readonly entries: readonly NewCheckpoint[]
}
/** Closes a wait whose time is over, unless a signal came first. */
export interface ExpireCommand {
  readonly type: 'expire'
  readonly runId: string
  readonly token: string
  readonly position: number
}
export type WaitOutcome =
  | { readonly type: 'waiting' }
  | { readonly type: 'signalled'; readonly payload: EncodedValue }
  | { readonly type: 'expired' }
  /** Another run waits on the key; nothing was opened, and no entry recorded. */
  | { readonly type: 'taken'; readonly holder: string }
  | ClaimLostOutcome

// ── From outside ────────────────────────────────────────────────────────────────────────────────────────────────

/** Cancels a run: at once, unless it is PENDING, which is asked to end. */
export interface CancelCommand {
  readonly type: 'cancel'
  readonly commandId: string
  readonly runId: string
}
/** `refused`: unknown, already terminal, or already requested (`status` says which; null: unknown). */
export type CancelOutcome =
  | { readonly type: 'cancelled'; readonly rippled: boolean }
  | { readonly type: 'requested'; readonly owner: string | null; readonly token: string | null }
  | { readonly type: 'notCancelled'; readonly status: RunStatus | null }

/** Makes an ERROR, DEAD or CANCELLED run claimable again, at its old place, in a new epoch. */
export interface RequeueCommand {
  readonly type: 'requeue'
  readonly commandId: string
  readonly runId: string
}
/** `holder`: the run that has its deduplication id now, which is why it was refused; null: its status is why. */
export type RequeueOutcome =
  | { readonly type: 'requeued' }
  | { readonly type: 'notRequeued'; readonly status: RunStatus | null; readonly holder: HeldDedup | null }
export interface HeldDedup {
  readonly queue: string
  readonly dedupId: string
  readonly holder: string
}

/** Gives a payload to every open wait on a key (all of one run), or else keeps it, the newest, for the first to come. */
export interface SignalCommand {
  readonly type: 'signal'
  readonly commandId: string
  readonly key: string
  readonly payload: EncodedValue
}
/** `runId`: whose waits were resolved; `woken`: it was WAITING and is due now. */
export type SignalOutcome =
  | { readonly type: 'delivered'; readonly runId: string; readonly woken: boolean }
  | { readonly type: 'buffered' }
  | { readonly type: 'replaced' }

export interface KvCommand {
  readonly type: 'kv'
  readonly commandId: string
  readonly change: KvChange
}
/** `expected`: the hash of what the key must hold; null: that it holds nothing. */
export type KvChange =
  | KvPut
  | KvDelete
  | (Omit<KvPut, 'type'> & { readonly type: 'putIf'; readonly expected: string | null })
  | (Omit<KvDelete, 'type'> & { readonly type: 'deleteIf'; readonly expected: string })
export interface KvPut {
  readonly type: 'put'
  readonly key: string
  readonly value: EncodedValue
  /** The same for equal values (of the codec's canonical text). */
  readonly hash: string
}
export interface KvDelete {
  readonly type: 'delete'
  readonly key: string
}
/** `applied`: of a delete, whether there was anything; of a conditional change, whether the condition held. */
export interface KvOutcome {
  readonly type: 'kv'
  readonly applied: boolean
}

/** What a step stages: committed with the entry that records its outcome, or not at all. */
export type Effect =
  | KvPut
  | KvDelete
  | { readonly type: 'start'; readonly run: NewRun }
  | { readonly type: 'signal'; readonly key: string; readonly payload: EncodedValue }

interface Outcomes {
  readonly enqueue: EnqueueOutcome
  readonly checkpoint: FencedOutcome
  readonly settle: FencedOutcome
  readonly perform: PerformOutcome
  readonly wait: WaitOutcome
  readonly expire: WaitOutcome
  readonly cancel: CancelOutcome
  readonly requeue: RequeueOutcome
  readonly signal: SignalOutcome
  readonly kv: KvOutcome
}
export type Command =
  | EnqueueCommand
  | CheckpointCommand
  | SettleCommand
  | PerformCommand
  | WaitCommand
  | ExpireCommand
  | CancelCommand
  | RequeueCommand
  | SignalCommand
  | KvCommand
export type OutcomeOf<C extends Command> = Outcomes[C['type']]
export type Outcome = Outcomes[keyof Outcomes]
