/** What a batch has to read, given the rows that it has locked. */
import type { Command, NewCheckpoint } from '../../commands.ts'
import type { RunRecord } from '../../records.ts'
import { isTerminal } from '../../records.ts'
import { holds } from '../../transitions.ts'
import type { OtherQuestions, StartQuestions } from './load.ts'
import type { Needs } from './needs.ts'

type Fenced = Extract<Command, { readonly token: string }>

export class Questions {
  /** By the run's `seq`: the first entry that a command brings. */
  readonly histories = new Map<number, { readonly id: string; readonly first: number }>()
  /** Runs whose waits for signals matter. */
  readonly waitingIds = new Set<string>()
  /** Queues that starts and requeues derive from. */
  readonly queues: readonly string[]
  /** null: none. */
  readonly others: OtherQuestions | null
  readonly #needs: Needs
  readonly #runs: ReadonlyMap<string, RunRecord>
  readonly #ending = new Set<string>()
  readonly #cancelled = new Set<string>()
  readonly #waits = new Set<number>()

  constructor(commands: readonly Command[], needs: Needs, runs: ReadonlyMap<string, RunRecord>) {
    this.#needs = needs
    this.#runs = runs
    for (const command of commands) if ('token' in command) this.#addFenced(command)
    for (const id of needs.cancelled) if (this.#mayEnd(id)) this.#cancelled.add(id)
    this.queues = [...new Set([...needs.queues, ...this.#requeued().flatMap(({ queue }) => queue ?? [])])]
    this.others = this.#others()
  }

  /** null: there are none. `places`: whether to take places for new runs. */
  starts(places: boolean): StartQuestions | null {
    const { starts, requeued } = this.#needs
    if (starts.length === 0 && requeued.size === 0) return null
    const slots = starts.flatMap(({ queue, dedup }) =>
      queue === null || dedup === null ? [] : [{ queue, dedupId: dedup.id }],
    )
    const kept = this.#requeued().flatMap(({ queue, dedupId }) =>
      queue === null || dedupId === null ? [] : [{ queue, dedupId }],
    )
    const ids = starts.map(({ id }) => id)
    return {
      ids: starts.length > 1 ? [...new Set(ids)] : ids,
      slots: [...slots, ...kept],
      queues: this.queues,
      places: places ? starts.length : 0,
    }
  }

  #requeued(): readonly RunRecord[] {
    return [...this.#needs.requeued].flatMap((id) => this.#runs.get(id) ?? [])
  }

  #addFenced(command: Fenced): void {
    const run = this.#runs.get(command.runId)
    if (run === undefined || !holds(run, command.token)) return
    const { type } = command
    this.#addEntries(run, type === 'perform' ? [command.entry] : type === 'expire' ? [] : command.entries)
    if (type === 'wait' || type === 'expire') this.#addWaits(run)
    if (type !== 'settle') return
    const { settlement } = command
    if (settlement.type === 'suspend') this.#addWaits(run)
    if (run.cancelRequested) this.#cancelled.add(run.id)
    else if (settlement.type !== 'suspend' && settlement.type !== 'release') this.#ending.add(run.id)
  }

  #addEntries(run: RunRecord, entries: readonly NewCheckpoint[]): void {
    const [entry] = entries
    if (entry === undefined) return
    let first = this.histories.get(run.seq)?.first ?? entry.seq
    for (const { seq } of entries) if (seq < first) first = seq
    this.histories.set(run.seq, { id: run.id, first })
    if (entries.some(({ type }) => type === 'outcome')) this.#addWaits(run)
  }

  #addWaits(run: RunRecord): void {
    this.#waits.add(run.seq)
    this.waitingIds.add(run.id)
  }

  /** Whether a cancellation may end the run in this batch: not if it is PENDING, as it stays unless it is settled. */
  #mayEnd(id: string): boolean {
    const run = this.#runs.get(id)
    if (run === undefined) return true
    const { fenced, requeued } = this.#needs
    return isTerminal(run.status) ? requeued.has(id) : run.status !== 'PENDING' || fenced.has(id)
  }

  #others(): OtherQuestions | null {
    const { runs, signals, waits, receipts } = this.#needs
    if (runs.size === 0 && signals.size === 0 && receipts.length === 0) return null
    return {
      histories: [...this.histories.keys()],
      waits: [...this.#waits],
      ending: [...this.#ending],
      cancelled: [...this.#cancelled],
      signals: [...new Set([...signals, ...waits])],
      receipts,
      queues: this.#queuesLetGo(),
    }
  }

  /** Elsewhere the lane says whether the queue is partitioned. */
  #queuesLetGo(): readonly string[] {
    const queues = new Set<string>()
    for (const { queue, lane } of this.#runs.values()) if (queue !== null && lane === '') queues.add(queue)
    return [...queues]
  }
}
