/** Everything a memory store holds. */
import type { EpochMs } from '../../core/clock.ts'
import type {
  AttemptRecord,
  CheckpointRecord,
  EncodedValue,
  Ending,
  NewCheckpoint,
  ProcessRecord,
  RunRecord,
} from '../records.ts'
import type { Transition } from '../transitions.ts'
import { currentAttempt } from '../transitions.ts'
import { RunTable } from './run-table.ts'

export class Tables {
  readonly runs = new RunTable()
  readonly inputs = new Map<string, EncodedValue>()
  readonly endings = new Map<string, Ending>()
  readonly processes = new Map<string, ProcessRecord>()
  readonly #histories = new Map<string, CheckpointRecord[]>()
  readonly #attempts = new Map<string, AttemptRecord[]>()

  apply({ run, ending, attempts }: Transition): RunRecord {
    this.runs.put(run)
    if (ending === null) this.endings.delete(run.id)
    else this.endings.set(run.id, Object.freeze(ending))
    if (attempts.length > 0) {
      const past = this.#attempts.get(run.id) ?? []
      this.#attempts.set(run.id, [...past, ...attempts.map((attempt) => Object.freeze(attempt))])
    }
    return run
  }

  history(id: string): readonly CheckpointRecord[] {
    return this.#histories.get(id)?.slice() ?? []
  }

  /** How many entries a run's history has, which is the `seq` of the next. */
  historyLength(id: string): number {
    return this.#histories.get(id)?.length ?? 0
  }

  /** What is recorded never changes: an entry whose `seq` is taken is a resend and is passed over. */
  record(id: string, entries: readonly NewCheckpoint[], now: EpochMs): void {
    if (entries.length === 0) return
    const history = this.#histories.get(id) ?? []
    this.#histories.set(id, history)
    for (const entry of entries) {
      if (entry.seq === history.length) history.push(Object.freeze({ ...entry, recordedAt: now }))
    }
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
