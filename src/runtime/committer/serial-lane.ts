/** A lane of single store calls: one in flight, in the order given, each sent again while the store is unavailable. */
import { detached } from '../detached-context.ts'
import { Fifo } from './fifo.ts'
import { Resender, type ResenderOptions } from './resend.ts'

interface Call {
  /** Settles the caller's promise; never rejects. */
  readonly run: () => Promise<void>
  readonly reject: (error: unknown) => void
}

export class SerialLane {
  readonly #resender: Resender
  readonly #onSettled: () => void
  readonly #waiting = new Fifo<Call>()
  #current: Call | null = null
  #working = false

  constructor(options: ResenderOptions, onSettled: () => void) {
    this.#resender = new Resender(options)
    this.#onSettled = onSettled
  }

  get pending(): number {
    return this.#waiting.size + (this.#current === null ? 0 : 1)
  }

  get activity(): number {
    return this.#resender.activity
  }

  get lastError(): unknown {
    return this.#resender.lastError
  }

  run<T>(attempt: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // Whoever is answered finds the call gone from `pending`.
      const run = async (): Promise<void> => {
        try {
          const result = await this.#resender.run(attempt)
          this.#current = null
          resolve(result)
        } catch (error) {
          this.#current = null
          reject(error)
        }
      }
      this.#waiting.push({ run, reject })
      if (!this.#working) void detached(() => this.#work())
    })
  }

  /** Rejects what waits and what is in flight; a late answer of the store is ignored. */
  abandon(error: unknown): void {
    this.#resender.abandon()
    this.#current?.reject(error)
    this.#current = null
    for (let call = this.#waiting.shift(); call !== undefined; call = this.#waiting.shift()) call.reject(error)
    this.#onSettled()
  }

  async #work(): Promise<void> {
    this.#working = true
    for (let call = this.#waiting.shift(); call !== undefined; call = this.#waiting.shift()) {
      this.#current = call
      await call.run()
    }
    this.#working = false
    this.#onSettled()
  }
}
