/** What the demo shows while it runs: a line for each half second, and one for each thing that happens. */
import { line, paint } from '../demo/screen.ts'
import type { Entry, Journal } from './outside.ts'

const EVERY_MS = 500
const COLUMN = 14

export class Timeline {
  readonly #began = Date.now()
  readonly #journal: Journal
  readonly #workers: readonly string[]
  readonly #killed = new Set<string>()
  #from = this.#began
  #timer: NodeJS.Timeout | undefined

  constructor(journal: Journal, workers: readonly string[]) {
    this.#journal = journal
    this.#workers = workers
  }

  start(): void {
    const columns = [...this.#workers, 'render', 'api', 'billing'].map((title) => title.padEnd(COLUMN))
    line(paint('dim', `${' '.repeat(10)}${columns.join('')}`.trimEnd()))
    this.#timer = setInterval(() => this.#tick(), EVERY_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#tick()
  }

  tell(what: string, note = ''): void {
    line(`${this.#when(Date.now())}${what}  ${paint('dim', note)}`.trimEnd())
  }

  killed(worker: string): void {
    this.#killed.add(worker)
  }

  /** What each worker did since the last line, and what was done of each queue. */
  #tick(): void {
    const [from, until] = [this.#from, Date.now()]
    this.#from = until
    const began = this.#journal.entries.filter(({ beganAt }) => beganAt >= from && beganAt < until)
    const marks = this.#workers.map((worker) => {
      const count = began.filter((entry) => entry.worker === worker).length
      if (count === 0) return this.#killed.has(worker) ? paint('red', 'dead'.padEnd(COLUMN)) : ' '.repeat(COLUMN)
      return paint('green', '■'.repeat(Math.min(count, COLUMN - 2)).padEnd(COLUMN))
    })
    const of = (queue: string): readonly Entry[] => began.filter((entry) => entry.queue === queue)
    const most = Math.max(0, ...of('render').map(({ atATime }) => atATime))
    const customers = new Set(of('billing').map(({ key }) => key)).size
    const cells = [
      most === 0 ? '' : `${most} at a time`,
      of('api').length === 0 ? '' : `${of('api').length} calls`,
      customers === 0 ? '' : `${customers} customers`,
    ]
    if (began.length === 0 && this.#killed.size === 0) return
    line(`${this.#when(until)}${marks.join('')}${cells.map((cell) => cell.padEnd(COLUMN)).join('')}`.trimEnd())
  }

  #when(at: number): string {
    return paint('dim', `${((at - this.#began) / 1_000).toFixed(1)} s`.padStart(8).padEnd(10))
  }
}
