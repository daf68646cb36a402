/** How a pass reaches the store and other runs, always under the claim of its delivery. */
import type { Action, NewCheckpoint, PerformOutcome, WaitOutcome } from '../../store/commands.ts'
import type { SqlAccess, SqlTransactions, TransactOutcome, TransactRequest } from '../../store/contract.ts'
import type { EncodedValue, Ending } from '../../store/records.ts'

/** A transaction of a run; the port knows under which claim. */
export type Transaction = Omit<TransactRequest, 'runId' | 'token'> & {
  readonly body: (sql: SqlAccess) => Promise<EncodedValue>
}

export interface Transactions extends Pick<SqlTransactions, 'isolationLevels'> {
  /** Runs a body in a transaction of its own, and records its value in the same. Rejects if the store is in trouble. */
  transact(transaction: Transaction): Promise<TransactOutcome>
}

export interface Port {
  /** Stores entries; false: the claim is lost. Rejects if the store refuses them or is closed. */
  store(entries: readonly NewCheckpoint[]): Promise<boolean>
  perform(entry: NewCheckpoint, action: Action): Promise<PerformOutcome>
  /** What the store can do with SQL of users; undefined: nothing. */
  readonly transactions?: Transactions | undefined
  /** Opens the wait for a signal at a position, or looks at the one that is open there. */
  wait(position: number, key: string, entries: readonly NewCheckpoint[]): Promise<WaitOutcome>
  /** Closes a wait whose time is over, unless a signal came first. */
  expire(position: number): Promise<WaitOutcome>
  /**
   * Looks at a run: how it has ended, undefined if it has not. Rejects if the store can't be read now. A pass looks
   * before it waits: were it suspended before `onEnded` has told of an end that is there already, the store would wake
   * it at once, and so on for ever.
   */
  ending(runId: string): Promise<Ending | 'missing' | undefined>
  /** Attempts of a run so far; 0 if there is no such run. Rejects if the store can't be read now. */
  attempts(runId: string): Promise<number>
  /** Calls back once, later, when the run has ended or does not exist. Returns the way to give up. */
  onEnded(runId: string, listener: (ended: Ending | 'missing') => void): () => void
  /** Calls back once, later, when a signal has resolved the wait at the position. Returns the way to give up. */
  onSignal(position: number, listener: (payload: EncodedValue) => void): () => void
}
