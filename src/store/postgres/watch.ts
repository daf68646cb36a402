/**
 * Changes that other processes make, and telling them of one's own. What a store itself has told it does not hear: who
 * tells is the one thing that a notification says. (The process of the server that it came from would not do: behind a
 * pooler, several processes share those.) One without a word is from a start in SQL, in a transaction of somebody else.
 *
 * Nothing is asked of the server while nobody watches.
 */
import { Buffer } from 'node:buffer'
import { Emitter } from '../../core/events.ts'
import { sha256Hex } from '../../core/ids.ts'
import { realRandom } from '../../core/random.ts'
import type { ClientFactory } from './client-config.ts'
import { Listener, type ListenerPatience } from './listener.ts'
import { Notifier } from './notifier.ts'
import type { Session } from './session.ts'

export interface WatchOptions {
  readonly schema: string
  /** `Database.read`. */
  readonly read: <T>(body: (session: Session) => Promise<T>) => Promise<T>
  /** null: tells and hears nothing. */
  readonly newClient: ClientFactory | null
  readonly onTrouble?: (error: unknown) => void
  readonly patience?: ListenerPatience
}

/** A name of PostgreSQL is no longer. */
const LONGEST_NAME_BYTES = 63

/** What the processes of a schema listen to. */
export function channelOf(schema: string): string {
  const name = `perdure:${schema}`
  return Buffer.byteLength(name) <= LONGEST_NAME_BYTES ? name : `perdure:${sha256Hex(schema).slice(0, 32)}`
}

export class Watch {
  readonly #options: WatchOptions
  readonly #channel: string
  readonly #sender: string
  readonly #notifier: Notifier | null
  readonly #changes = new Emitter<void>()
  #listener: Listener | undefined
  /** The end of the one before. */
  #closing: Promise<void> = Promise.resolve()
  #emitting = false

  constructor(options: WatchOptions) {
    const { schema, read, newClient, onTrouble = () => {} } = options
    this.#options = options
    this.#channel = channelOf(schema)
    this.#sender = Buffer.from(realRandom.fill(new Uint8Array(9))).toString('base64url')
    const { channel, sender } = { channel: this.#channel, sender: this.#sender }
    this.#notifier = newClient === null ? null : new Notifier({ read, channel, sender, onTrouble })
  }

  /** Returns the way to stop. */
  on(onChange: () => void): () => void {
    // A listener of its own for each call, so that one function may watch twice.
    const off = this.#changes.on(() => onChange())
    this.#listen()
    return () => {
      off()
      if (this.#changes.size === 0) this.#stop()
    }
  }

  /** This store has committed what others may wait for. */
  changed(): void {
    this.#notifier?.changed()
  }

  /** Resolves when the last change has been told and no connection is left. */
  async close(): Promise<void> {
    this.#stop()
    await Promise.all([this.#closing, this.#notifier?.close()])
  }

  #listen(): void {
    const { newClient, onTrouble = () => {}, patience } = this.#options
    if (newClient === null || this.#listener !== undefined) return
    this.#listener = new Listener({
      newClient,
      channel: this.#channel,
      onNotified: (sender) => {
        if (sender !== this.#sender) this.#emitSoon()
      },
      onListening: () => this.#emitSoon(),
      onTrouble,
      ...(patience === undefined ? {} : { patience }),
    })
  }

  #stop(): void {
    const listener = this.#listener
    if (listener === undefined) return
    this.#listener = undefined
    this.#closing = Promise.all([this.#closing, listener.close()]).then(() => {})
  }

  /** Those that arrive together are one change. */
  #emitSoon(): void {
    if (this.#emitting) return
    this.#emitting = true
    queueMicrotask(() => {
      this.#emitting = false
      this.#changes.emit()
    })
  }
}
