/**
 * Hears what other processes tell (notifier.ts): one connection of its own, as pooled ones come and go, and as a pooler
 * may give each statement another. Lost, it is made anew for as long as it takes, and whoever listens is called after
 * each time, as something may have been missed. It keeps no process alive, and what goes wrong it only reports: nothing
 * depends on it but how soon things are noticed.
 */
import { Socket } from 'node:net'
import type { Client } from 'pg'
import { backoffMs } from '../../core/backoff.ts'
import type { Timer } from '../../core/clock.ts'
import { realRandom } from '../../core/random.ts'
import { realScheduler } from '../../core/scheduler.ts'
import type { ClientFactory } from './client-config.ts'

export interface ListenerOptions {
  readonly newClient: ClientFactory
  readonly channel: string
  readonly onNotified: (payload: string) => void
  /** Called each time that it begins to listen. */
  readonly onListening: () => void
  readonly onTrouble: (error: unknown) => void
  readonly patience?: ListenerPatience
}

export interface ListenerPatience {
  /** How often it makes sure that the server is still there. */
  readonly lookEveryMs: number
  /** A server that takes longer to answer is taken for gone. */
  readonly answerWithinMs: number
}

/** Many processes lose theirs at the same moment. */
const RECONNECT = { baseMs: 100, factor: 2, maxMs: 10_000, jitter: 0.5 }
const PATIENCE: ListenerPatience = { lookEveryMs: 30_000, answerWithinMs: 10_000 }
const LONGEST_GOODBYE_MS = 500

export class Listener {
  readonly #options: ListenerOptions
  readonly #ended: Promise<void>
  #client: Client | undefined
  #closed = false
  #failures = 0
  #endWait: (() => void) | undefined

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#ended = this.#run()
  }

  /** Resolves when its connection is closed. */
  async close(): Promise<void> {
    this.#closed = true
    this.#endWait?.()
    if (this.#client !== undefined) await goodbye(this.#client)
    await this.#ended
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#listen()
      } catch (error) {
        if (!this.#closed) this.#options.onTrouble(error)
      }
      this.#failures += 1
      if (!this.#closed) await this.#wait(backoffMs(RECONNECT, this.#failures, realRandom))
    }
  }

  /** Listens until the connection is lost, and rejects then. */
  async #listen(): Promise<never> {
    const { newClient, channel, onNotified, onListening, patience = PATIENCE } = this.#options
    const client = newClient({ connectionTimeoutMillis: patience.answerWithinMs })
    this.#client = client
    const loss = new Loss(client, () => this.#endWait?.())
    try {
      await connect(client)
      keepNothingAlive(client)
      client.on('notification', (told) => {
        if (told.channel === channel) onNotified(told.payload ?? '')
      })
      await inTime(client.query(`listen ${client.escapeIdentifier(channel)}`), patience)
      this.#failures = 0
      onListening()
      for (;;) {
        loss.check()
        await this.#wait(patience.lookEveryMs)
        loss.check()
        // A connection can be gone without either end being told.
        await inTime(client.query('select 1'), patience)
      }
    } finally {
      this.#client = undefined
      await goodbye(client)
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = realScheduler.after(ms, resolve, { background: true })
      this.#endWait = () => {
        timer.cancel()
        resolve()
      }
    })
  }
}

/** Why a connection is no more, as soon as it is. */
class Loss {
  #reason: unknown

  constructor(client: Client, onLost: () => void) {
    const lose = (reason: unknown): void => {
      this.#reason ??= reason
      onLost()
    }
    client.on('error', lose)
    client.on('end', () => lose(new Error('the connection was closed')))
  }

  /** Throws if it is lost. */
  check(): void {
    if (this.#reason !== undefined) throw this.#reason
  }
}

/** `pg` itself forgets who waits for a connection that is ended before it was made. */
function connect(client: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    client.on('end', () => reject(new Error('the connection was closed before it was made')))
    client.connect().then(() => resolve(), reject)
  })
}

function keepNothingAlive({ connection }: Client): void {
  if (connection.stream instanceof Socket) connection.stream.unref()
}

async function inTime(answer: Promise<unknown>, { answerWithinMs }: ListenerPatience): Promise<void> {
  let timer: Timer | undefined
  const late = new Promise<never>((_, reject) => {
    const giveUp = (): void => reject(new Error(`no answer within ${answerWithinMs} ms`))
    timer = realScheduler.after(answerWithinMs, giveUp, { background: true })
  })
  try {
    await Promise.race([late, answer])
  } finally {
    timer?.cancel()
  }
}

/** Closes the connection: in good order if the server answers soon. */
async function goodbye(client: Client): Promise<void> {
  const timer = realScheduler.after(LONGEST_GOODBYE_MS, () => client.connection.stream.destroy())
  await client.end().catch(() => {})
  timer.cancel()
}
