/** The pool that a store takes its connections from: one of its own, or the user's, which is never ended here. */
import type { Client, ClientConfig, Pool, PoolClient, PoolConfig } from 'pg'
import { StoreClosedError } from '../../core/errors.ts'
import { realScheduler } from '../../core/scheduler.ts'
import { clientConfig } from './client-config.ts'
import { ignored } from './connection.ts'
import type { Driver } from './driver.ts'
import type { Settings } from './options.ts'
import { driverError } from './trouble.ts'

/** For what the user's configuration leaves open. */
const OWN: PoolConfig = {
  max: 10,
  // Waiting for a connection, too, is trouble to tell of after a while.
  connectionTimeoutMillis: 10_000,
  keepAlive: true,
  fallback_application_name: 'perdure',
  // A process with nothing left to do exits.
  allowExitOnIdle: true,
  pipeline: true,
}

/** A pool of the user's may let one wait for ever, as when all its connections were taken and not given back. */
const LONGEST_WAIT_MS = 10_000

export class ConnectionPool {
  readonly #driver: Driver
  readonly #settings: Settings
  readonly #pool: Pool
  readonly #uses = new Set<Promise<unknown>>()
  /** Those that wait for a connection, and how they are told that they get none. */
  readonly #waiting = new Set<(error: unknown) => void>()
  #closed: Promise<void> | undefined

  constructor(driver: Driver, settings: Settings) {
    const { source } = settings
    this.#driver = driver
    this.#settings = settings
    this.#pool = source.type === 'given' ? source.pool : new driver.Pool({ ...OWN, ...source.config })
    listen(this.#pool)
  }

  /** At most so many connections at a time. */
  get size(): number {
    return this.#pool.options.max
  }

  /** Lends a connection, which `body` gives back. */
  async lend<T>(body: (client: PoolClient) => Promise<T>): Promise<T> {
    const use = this.#connect().then(body)
    this.#uses.add(use)
    try {
      return await use
    } finally {
      this.#uses.delete(use)
    }
  }

  /** A connection that is not the pool's, not connected yet: to where the pool's go, or to where one can listen. */
  newClient(use: 'any' | 'listen', config: ClientConfig = {}): Client {
    return new this.#driver.Client({ ...this.clientConfig(use), ...config })
  }

  clientConfig(use: 'any' | 'listen'): ClientConfig {
    const { listenUrl } = this.#settings
    return clientConfig(
      use === 'listen' && listenUrl !== undefined ? { connectionString: listenUrl } : this.#pool.options,
    )
  }

  /** Waits for all that is under way. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    // Nobody may ever give that pool a connection back.
    if (this.#settings.source.type === 'given') {
      for (const giveUp of this.#waiting) giveUp(new StoreClosedError({ store: this.#settings.store }))
    }
    await Promise.allSettled(this.#uses)
    if (this.#settings.source.type === 'given') stopListening(this.#pool)
    // Connections may be lost even while they are closed: there it listens on.
    else await this.#pool.end()
  }

  #connect(): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      let waits = true
      const stop = (): void => {
        waits = false
        this.#waiting.delete(giveUp)
        late.cancel()
      }
      const giveUp = (error: unknown): void => {
        stop()
        reject(error)
      }
      const late = realScheduler.after(LONGEST_WAIT_MS, () => giveUp(driverError(new Error(this.#whyNone()))))
      this.#waiting.add(giveUp)
      this.#asked().then(
        (client) => {
          // One that comes too late goes back.
          if (!waits) return client.release()
          stop()
          resolve(client)
        },
        (error: unknown) => {
          if (waits) giveUp(driverError(error))
        },
      )
    })
  }

  /** What it is made with may be refused by an exception. */
  async #asked(): Promise<PoolClient> {
    return await this.#pool.connect()
  }

  #whyNone(): string {
    const { totalCount, idleCount, options } = this.#pool
    const used = totalCount - idleCount
    const state = `the pool gave no connection within ${LONGEST_WAIT_MS} ms`
    if (used < options.max) return state
    return `${state}: all ${used} are in use. Give each back when it is done with (client.release), or the pool a larger max`
  }
}

/** How many stores there are over a pool. */
const listened = new WeakMap<Pool, number>()

/** An idle connection that is lost leaves the pool by itself; if nobody listened, the process would end. */
function listen(pool: Pool): void {
  const stores = listened.get(pool) ?? 0
  if (stores === 0) pool.on('error', ignored).on('connect', outliveBeginning)
  listened.set(pool, stores + 1)
}

/**
 * The server may accept a connection and end it in one message (a shutdown, an administrator): the pool listens no more
 * then, and whoever the connection is for not yet.
 */
function outliveBeginning(client: PoolClient): void {
  client.on('error', ignored)
  realScheduler.onTurn(() => client.off('error', ignored))
}

function stopListening(pool: Pool): void {
  const stores = listened.get(pool) ?? 0
  if (stores === 1) pool.off('error', ignored).off('connect', outliveBeginning)
  listened.set(pool, stores - 1)
}
