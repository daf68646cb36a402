/** Everything a memory store holds. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { Receipts } from '../apply/receipts.ts'
import type { Rows } from '../apply/rows.ts'
import { Waits } from '../apply/waits.ts'
import type { KvOutcome, NewCheckpoint, SignalOutcome } from '../commands.ts'
import type {
  AttemptRecord,
  CheckpointRecord,
  EncodedValue,
  Ending,
  ProcessRecord,
  QueueRecord,
  RunRecord,
} from '../records.ts'
import { isTerminal } from '../records.ts'
import type { Transition } from '../transitions.ts'
import { currentAttempt } from '../transitions.ts'
import { KeyValues } from './kv.ts'
import { Ledger } from './ledger.ts'
import { RunTable } from './run-table.ts'

export class Tables implements Rows {
  readonly runs = new RunTable()
  readonly inputs = new Map<string, EncodedValue>()
  readonly endings = new Map<string, Ending>()
  readonly processes = new Map<string, ProcessRecord>()
  readonly queues = new Map<string, QueueRecord>()
  readonly ledger = new Ledger()
  readonly waits = new Waits()
  readonly kv = new KeyValues()
  readonly signalReceipts = new Receipts<SignalOutcome>()
  readonly kvReceipts = new Receipts<KvOutcome>()
  readonly #histories = new Map<string, CheckpointRecord[]>()
  readonly #attempts = new Map<string, AttemptRecord[]>()

  /** null: the internal queue, or one that is not registered. */
  queue(name: string | null): QueueRecord | null {
    return name === null ? null : (this.queues.get(name) ?? null)
  }

  /** What a run waits for goes with its state: other runs while it is WAITING, signals until it ends. */
  apply({ run, ending, attempts }: Transition): RunRecord {
    this.runs.put(run)
    if (run.status !== 'WAITING') this.waits.forgetRuns(run.id)
    if (isTerminal(run.status)) this.waits.removeAll(run.id)
    if (ending === null) this.endings.delete(run.id)
    else this.endings.set(run.id, Object.freeze(ending))
    if (attempts.length > 0) {
      const past = this.#attempts.get(run.id) ?? []
      this.#attempts.set(run.id, [...past, ...attempts.map((attempt) => Object.freeze(attempt))])
    }
    return run
  }

  /** Removes a run that has ended, with all that belongs to it. */
  remove(run: RunRecord): void {
    this.runs.remove(run)
    this.inputs.delete(run.id)
    this.endings.delete(run.id)
    this.#histories.delete(run.id)
    this.#attempts.delete(run.id)
  }

  history(id: string): readonly CheckpointRecord[] {
    return this.#histories.get(id)?.slice() ?? []
  }

  recorded(id: string, seq: number): CheckpointRecord | undefined {
    return this.#histories.get(id)?.[seq]
  }

  /** The `seq` of a run's next entry. */
  nextEntry(id: string): number {
    return this.#histories.get(id)?.length ?? 0
  }

  /**
   * Appends an entry, unless its `seq` is taken: then it is a resend, as what is recorded never changes. A wait goes
   * with the outcome of its call.
   */
  record(id: string, entry: NewCheckpoint, now: EpochMs): boolean {
    const history = this.#histories.get(id) ?? []
    if (entry.seq < history.length) return false
    invariant(entry.seq === history.length, `run ${id}: entry ${entry.seq} leaves a gap in its history`)
    this.#histories.set(id, history)
    history.push(Object.freeze(toRecord(entry, now)))
    if (entry.type === 'outcome') this.waits.remove(id, entry.position)
    return true
  }

  /** A new epoch replays what succeeded before the first failure, and meets what failed afresh. */
  forgetFailures(id: string): void {
    const history = this.#histories.get(id)
    const firstFailure = history?.findIndex((entry) => entry.failed) ?? -1
    if (firstFailure >= 0) history?.splice(firstFailure)
  }

  attempts(id: string): readonly AttemptRecord[] {
    const run = this.runs.get(id)
    if (run === undefined) return []
    const current = currentAttempt(run)
    const past = this.#attempts.get(id) ?? []
    return current === null ? past : [...past, current]
  }
}

function toRecord(entry: NewCheckpoint, recordedAt: EpochMs): CheckpointRecord {
  return {
    seq: entry.seq,
    type: entry.type,
    position: entry.position,
    verb: entry.verb,
    name: entry.name,
    failed: entry.failed,
    value: entry.value,
    calls: entry.calls,
    delivered: entry.delivered,
    notes: entry.notes,
    recordedAt,
    attempts: entry.attempts,
  }
}
