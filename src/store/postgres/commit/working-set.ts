/** All that the commands of a batch may touch: read under their locks, changed in memory, and then written back. */
import type { EpochMs } from '../../../core/clock.ts'
import { invariant } from '../../../core/invariant.ts'
import type { RecordedEntry, Rows } from '../../apply/rows.ts'
import { flag, text, UnreadableValueError, word } from '../../columns.ts'
import type { KvOutcome, NewCheckpoint, SignalOutcome } from '../../commands.ts'
import type { AttemptRecord, EncodedValue, Ending, RunRecord } from '../../records.ts'
import { isTerminal } from '../../records.ts'
import type { QueueOfRun, Transition } from '../../transitions.ts'
import { LoadedReceipts } from './loaded-receipts.ts'
import { LoadedRuns } from './loaded-runs.ts'
import { LoadedValues } from './loaded-values.ts'
import { LoadedWaits } from './loaded-waits.ts'

/** What is known of a history: its end, and those of its entries that a command sends again. */
interface History {
  next: number
  readonly entries: Map<number, RecordedEntry>
}

export class WorkingSet implements Rows {
  readonly runs = new LoadedRuns()
  readonly inputs = new Map<string, EncodedValue>()
  readonly waits = new LoadedWaits()
  readonly kv = new LoadedValues()
  readonly signalReceipts = new LoadedReceipts<SignalOutcome>(toSignalOutcome)
  readonly kvReceipts = new LoadedReceipts<KvOutcome>(toKvOutcome)
  readonly #queues = new Map<string, QueueOfRun | null>()
  readonly #histories = new Map<string, History>()
  /** Runs all of whose waits for signals were read. */
  readonly #waitsKnown = new Set<string>()

  /** What has to be written besides. */
  readonly endings = new Map<string, Ending | null>()
  readonly attempts: { readonly run: number; readonly attempt: AttemptRecord }[] = []
  readonly entries: { readonly run: number; readonly entry: NewCheckpoint }[] = []
  /** Runs that have ended whose waits were not read. */
  readonly waitless = new Set<number>()
  /** Runs that were requeued, and the epoch that their failures belong to. */
  readonly requeued = new Map<string, number>()
  /** Hashes of inputs whose writer could not compute them. */
  readonly hashes = new Map<number, string>()

  // ── Loading ───────────────────────────────────────────────────────────────────────────────────────────────────

  loadQueue(name: string, queue: QueueOfRun | null): void {
    this.#queues.set(name, queue)
  }

  knowsQueue(name: string): boolean {
    return this.#queues.has(name)
  }

  /** `last`: the `seq` of the last entry; null: there is none. */
  loadHistory(id: string, last: number | null): void {
    this.#histories.set(id, { next: last === null ? 0 : last + 1, entries: new Map() })
  }

  loadEntry(id: string, seq: number, entry: RecordedEntry): void {
    this.#histories.get(id)?.entries.set(seq, entry)
  }

  /** All waits for signals that the run has are loaded. */
  loadedWaits(id: string): void {
    this.#waitsKnown.add(id)
  }

  // ── As commands see it ────────────────────────────────────────────────────────────────────────────────────────

  queue(name: string | null): QueueOfRun | null {
    if (name === null) return null
    const queue = this.#queues.get(name)
    invariant(queue !== undefined, `queue ${name} was not read before it was needed`)
    return queue
  }

  apply({ run, ending, attempts }: Transition): RunRecord {
    const before = this.runs.at(run.id)
    this.runs.put(run)
    if (run.status !== 'WAITING') this.waits.forgetRuns(run.id)
    if (isTerminal(run.status)) {
      this.waits.removeAll(run.id)
      // A run that is PENDING waits for no other.
      if (before.status !== 'PENDING' || !this.#waitsKnown.has(run.id)) this.waitless.add(run.seq)
    }
    if (ending !== null) this.endings.set(run.id, ending)
    else if (isTerminal(before.status)) this.endings.set(run.id, null)
    for (const attempt of attempts) this.attempts.push({ run: run.seq, attempt })
    return run
  }

  recorded(id: string, seq: number): RecordedEntry | undefined {
    const history = this.#histories.get(id)
    if (history === undefined || seq >= history.next) return undefined
    const entry = history.entries.get(seq)
    invariant(entry !== undefined, `run ${id}: entry ${seq} was not read before it was needed`)
    return entry
  }

  nextEntry(id: string): number {
    return this.#historyOf(id).next
  }

  record(id: string, entry: NewCheckpoint, _now: EpochMs): boolean {
    const history = this.#historyOf(id)
    if (entry.seq < history.next) return false
    invariant(entry.seq === history.next, `run ${id}: entry ${entry.seq} leaves a gap in its history`)
    history.next += 1
    history.entries.set(entry.seq, entry)
    this.entries.push({ run: this.runs.at(id).seq, entry })
    if (entry.type === 'outcome') this.waits.remove(id, entry.position)
    return true
  }

  forgetFailures(id: string): void {
    this.requeued.set(id, this.runs.at(id).epoch - 1)
  }

  /** A run that this batch has created has none yet. */
  #historyOf(id: string): History {
    const known = this.#histories.get(id)
    if (known !== undefined) return known
    invariant(this.runs.created.has(id), `the history of run ${id} was not read before it was needed`)
    const history: History = { next: 0, entries: new Map() }
    this.#histories.set(id, history)
    return history
  }
}

const toSignalled = word(['delivered', 'buffered', 'replaced'] as const)

function toSignalOutcome(answer: unknown): SignalOutcome {
  const { type: column, runId, woken } = fieldsOf(answer)
  const type = toSignalled(column)
  return type === 'delivered' ? { type, runId: text(runId), woken: flag(woken) } : { type }
}

function toKvOutcome(answer: unknown, commandId: string): KvOutcome {
  const { type, applied } = fieldsOf(answer)
  if (type !== 'kv') throw new UnreadableValueError(`command ${commandId} was a ${String(type)} before`)
  return { type, applied: flag(applied) }
}

function fieldsOf(answer: unknown): Readonly<Record<string, unknown>> {
  if (typeof answer !== 'object' || answer === null) throw new UnreadableValueError('a receipt holds no answer')
  return { ...answer }
}
