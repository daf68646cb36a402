/**
 * The rows that commands are applied to, as a store that applies them in memory gives them: `memory()` all it has, a
 * store on a server those that a batch touches, which it has read under their locks and writes back afterwards.
 */
import type { EpochMs } from '../../core/clock.ts'
import type { AwaitedRun, KvChange, KvOutcome, NewCheckpoint, SignalOutcome } from '../commands.ts'
import type { EncodedValue, RunRecord, WaitRecord } from '../records.ts'
import type { QueueOfRun, Transition } from '../transitions.ts'

export interface Rows {
  readonly runs: RunRows
  readonly inputs: { set(id: string, input: EncodedValue): unknown }
  readonly waits: WaitRows
  readonly kv: { change(change: KvChange): KvOutcome }
  readonly signalReceipts: ReceiptRows<SignalOutcome>
  readonly kvReceipts: ReceiptRows<KvOutcome>

  /** null: the internal queue, or one that is not registered. */
  queue(name: string | null): QueueOfRun | null
  /** Stores what a transition made of a run: its row, its ending, past attempts, and what it waits for. */
  apply(transition: Transition): RunRecord

  /** The entry of a run's history with this `seq`, if it is recorded. */
  recorded(id: string, seq: number): RecordedEntry | undefined
  /** The `seq` of a run's next entry. */
  nextEntry(id: string): number
  /** Appends an entry, unless its `seq` is taken: then it is a resend. True if it was appended. */
  record(id: string, entry: NewCheckpoint, now: EpochMs): boolean
  /** A new epoch replays what succeeded before the first failure, and meets what failed afresh. */
  forgetFailures(id: string): void
}

/** What tells a resend of an entry from another one. */
export type RecordedEntry = Pick<NewCheckpoint, 'position' | 'verb' | 'name' | 'value'>

export interface RunRows {
  /** The place of the next run that is accepted. */
  nextSeq(): number
  get(id: string): RunRecord | undefined
  /** A run that is known to be there. */
  at(id: string): RunRecord
  put(run: RunRecord): void
  /** The run that holds a deduplication id in a queue. */
  holderOf(queue: string, dedupId: string): RunRecord | undefined
  /** Attached children that have not ended. */
  childrenOf(id: string): readonly RunRecord[]
}

export type SignalWait = Extract<WaitRecord, { readonly type: 'signal' }>

export interface WaitRows {
  at(runId: string, position: number): SignalWait | undefined
  /** The run that has open waits on the key. */
  holderOf(key: string): string | undefined
  /** The caller has checked that no other run waits on the key. A buffered signal is taken at once. */
  open(runId: string, position: number, key: string): SignalWait
  expire(wait: SignalWait): SignalWait
  /** Gives the payload to every open wait on the key, and says whose they were. */
  deliver(key: string, payload: EncodedValue): string | undefined
  /** True if it replaces a signal that nobody has waited for yet. */
  buffer(key: string, payload: EncodedValue): boolean
  /** True if a signal has come for a wait whose outcome is not recorded yet. */
  hasSignalled(runId: string): boolean
  /** The runs that a run is suspended for. */
  awaitRuns(runId: string, awaited: readonly AwaitedRun[]): void
  /** The runs that are suspended for a run. */
  awaiting(childId: string): readonly string[]
}

export interface ReceiptRows<Answer extends object> {
  /** The answer that the command was given before, or else that of `act`, which is kept. */
  once(commandId: string, now: EpochMs, act: () => Answer): Answer
}
