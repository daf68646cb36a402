/** One pooled connection, for as long as a read or a transaction has it. */
import type { CustomTypesConfig, PoolClient, QueryArrayConfig } from 'pg'
import type { EpochMs } from '../../core/clock.ts'
import type { Row, Transaction } from './session.ts'
import type { Statements } from './statements.ts'
import { driverError, spoilsConnection } from './trouble.ts'

export interface Speech {
  readonly statements: Statements
  readonly types: CustomTypesConfig
  /** What an instant that the database has told is by the store's clock. */
  readonly instant: (databaseNow: unknown) => EpochMs
}

export interface Answering {
  /** A connection that gives no answer for so long is taken for dead; undefined: it may take any time. */
  readonly answerWithinMs: number | undefined
}

/** `pg` knows it for each query, its types for a whole client. */
interface Timed extends QueryArrayConfig<unknown[]> {
  readonly query_timeout: number | undefined
}

export class Connection implements Transaction {
  readonly #client: PoolClient
  readonly #speech: Speech
  readonly #timeout: number | undefined
  /** Sends each statement without waiting for the answer to the one before. */
  readonly #pipelined: boolean
  #last: Promise<unknown> = Promise.resolve()
  #ending: Promise<string> | undefined
  #corked = false
  #spoilt = false

  constructor(client: PoolClient, speech: Speech, { answerWithinMs }: Answering) {
    this.#client = client
    this.#speech = speech
    this.#timeout = answerWithinMs
    this.#pipelined = 'pipeline' in client && client.pipeline === true
    client.on('error', ignored)
  }

  /** What comes over it is not text. */
  get isBinary(): boolean {
    return 'binary' in this.#client && this.#client.binary === true
  }

  instant(databaseNow: unknown): EpochMs {
    return this.#speech.instant(databaseNow)
  }

  async query(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const { statements, types } = this.#speech
    const { text, name } = statements.of(sql)
    const query: Timed = { text, values: [...values], rowMode: 'array', types, query_timeout: this.#timeout }
    if (name !== undefined) query.name = name
    const { rows } = await this.#send(() => this.#client.query<unknown[], unknown[]>(query))
    return rows
  }

  /** Runs statements without values, and answers with what the last of them is called: `COMMIT`, say. */
  async command(text: string): Promise<string> {
    const command = { text, query_timeout: this.#timeout }
    const results: readonly { readonly command: string }[] = [
      await this.#send(() => this.#client.query(command)),
    ].flat()
    return results.at(-1)?.command ?? ''
  }

  finish(): void {
    this.#ending = this.command('COMMIT')
    this.#ending.catch(ignored)
  }

  /** Commits, unless that is under way already, and answers with what became of it: `COMMIT` or `ROLLBACK`. */
  commit(): Promise<string> {
    return this.#ending ?? this.command('COMMIT')
  }

  /** Ends the transaction, if the connection can still be told to. */
  async rollback(): Promise<void> {
    if (!this.#spoilt) await this.command('ROLLBACK').catch(ignored)
  }

  /** Somebody else has used it, and may have changed its session. */
  spoil(): void {
    this.#spoilt = true
  }

  /** Gives it back to the pool, or away for ever if it is spoilt. */
  release(): void {
    this.#client.release(this.#spoilt)
    this.#client.off('error', ignored)
  }

  async #send<T>(query: () => Promise<T>): Promise<T> {
    try {
      if (this.#pipelined) {
        this.#cork()
        return await query()
      }
      const answer = this.#last.then(query, query)
      this.#last = answer
      return await answer
    } catch (error) {
      const explained = driverError(error)
      this.#spoilt ||= spoilsConnection(explained)
      throw explained
    }
  }

  /** What is sent in one turn leaves as one message: each would wake the server, and is a call of the system here. */
  #cork(): void {
    if (this.#corked) return
    const { stream } = this.#client.connection
    this.#corked = true
    stream.cork()
    process.nextTick(() => {
      this.#corked = false
      stream.uncork()
    })
  }
}

/** Whoever waits for an answer is told of the loss of a connection; without a listener it would end the process. */
export function ignored(): void {}
