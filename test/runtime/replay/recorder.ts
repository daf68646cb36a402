/** A store's view of one run, for passes that only the test sees: commands are applied in order, each after a wait of its own. */
import type { Port } from '../../../src/runtime/replay/port.ts'
import type { Action, NewCheckpoint, PerformOutcome, WaitOutcome } from '../../../src/store/commands.ts'
import type { CheckpointRecord, EncodedValue, Ending } from '../../../src/store/records.ts'
import { Facts } from './facts.ts'

interface Listener {
  /** True if it was called back. */
  tell(): boolean
}

export class Recorder implements Port {
  readonly facts: Facts
  /** What a crash would leave, before the first change and after each. */
  readonly moments: Facts[]
  readonly #delay: () => Promise<unknown>
  readonly #listeners = new Set<Listener>()
  #last: Promise<unknown> = Promise.resolve()

  /** Goes on from what was recorded before. */
  constructor(before: readonly CheckpointRecord[] | Facts, delay: () => Promise<unknown>) {
    this.facts = before instanceof Facts ? before.copy() : Facts.of(before)
    this.moments = [this.facts.copy()]
    this.#delay = delay
  }

  get entries(): readonly CheckpointRecord[] {
    return this.facts.entries
  }

  readonly store = (entries: readonly NewCheckpoint[]): Promise<boolean> =>
    this.#inOrder(() => {
      this.facts.record(entries)
      return true
    })

  perform(entry: NewCheckpoint, action: Action): Promise<PerformOutcome> {
    return this.#inOrder(() => this.facts.perform(entry, action))
  }

  wait(position: number, key: string, entries: readonly NewCheckpoint[]): Promise<WaitOutcome> {
    return this.#inOrder(() => this.facts.wait(position, key, entries))
  }

  expire(position: number): Promise<WaitOutcome> {
    return this.#inOrder(() => this.facts.expire(position))
  }

  async ending(runId: string): Promise<Ending | 'missing' | undefined> {
    await this.#delay()
    return this.facts.ending(runId)
  }

  async attempts(): Promise<number> {
    await this.#delay()
    return 3
  }

  onEnded(runId: string, listener: (ended: Ending | 'missing') => void): () => void {
    return this.#listen(() => this.facts.ending(runId), listener)
  }

  onSignal(position: number, listener: (payload: EncodedValue) => void): () => void {
    return this.#listen(() => this.facts.waits.get(position)?.payload ?? undefined, listener)
  }

  /** Something that others do: a signal, the end of a child. */
  change<T>(act: (facts: Facts) => T): T {
    const result = act(this.facts)
    this.#changed()
    return result
  }

  /** Callbacks that somebody waits for. */
  get listeners(): number {
    return this.#listeners.size
  }

  #inOrder<T>(act: () => T): Promise<T> {
    const done = this.#last.then(this.#delay).then(() => this.change(act))
    this.#last = done.catch(() => {})
    return done
  }

  #changed(): void {
    this.moments.push(this.facts.copy())
    for (const listener of [...this.#listeners]) if (listener.tell()) this.#listeners.delete(listener)
  }

  #listen<T>(look: () => T | undefined, listener: (value: T) => void): () => void {
    const mine: Listener = {
      tell: () => {
        const value = look()
        if (value === undefined) return false
        void this.#delay().then(() => {
          if (!stopped) listener(value)
        })
        return true
      },
    }
    let stopped = false
    this.#listeners.add(mine)
    void this.#delay().then(() => {
      if (this.#listeners.has(mine) && mine.tell()) this.#listeners.delete(mine)
    })
    return () => {
      stopped = true
      this.#listeners.delete(mine)
    }
  }
}
