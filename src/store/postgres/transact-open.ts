/** One open transaction of a user's, as its body sees it: on a client of `pg`, until it ends, by whatever comes first. */
import type { PoolClient, QueryResult } from 'pg'
import { TransactionClosedError } from '../../core/errors.ts'
import type { SqlAccess, SqlRow, TransactRequest } from '../contract.ts'
import { assertStaysOpen } from '../stays-open.ts'
import { ignored } from './connection.ts'
import { isPassing } from './trouble.ts'

/** Statements after which a connection is not what it was, where they are not local to the transaction. */
const CHANGES_SESSION =
  /^\s*(set(?!\s+(local|constraints|transaction))|reset|listen|load|discard|prepare|declare|do|call)\b|set_config|advisory|\btemp/i

export class UserTransaction implements SqlAccess {
  readonly #client: PoolClient
  readonly #request: TransactRequest
  readonly #pipelined: boolean
  #last: Promise<unknown> = Promise.resolve()
  #running = 0
  #ended: { readonly error: unknown } | undefined
  #onDeath: (error: unknown) => void = () => {}
  /** Rejects when it is ended before its time. */
  readonly death: Promise<never>
  /** The session may have been changed for those who come after. */
  changedSession = false
  /** What a statement has met that says nothing about it. */
  passing: { readonly error: unknown } | undefined
  /** What the last statement that failed was refused with: after that PostgreSQL refuses all. */
  refusal: { readonly error: unknown } | undefined

  constructor(client: PoolClient, request: TransactRequest) {
    this.#client = client
    this.#request = request
    this.#pipelined = 'pipeline' in client && client.pipeline === true
    this.death = new Promise((_, reject) => {
      this.#onDeath = reject
    })
    this.death.catch(() => {})
  }

  async query(sql: string, params: readonly unknown[]): Promise<readonly SqlRow[]> {
    return (await this.#send(sql, params)).rows
  }

  async run(sql: string, params: readonly unknown[]): Promise<{ readonly changes: number }> {
    return { changes: (await this.#send(sql, params)).rowCount ?? 0 }
  }

  get native(): unknown {
    this.#assertOpen()
    this.changedSession = true
    return this.#client
  }

  /** True while a statement has no answer, as far as that is known. */
  get running(): boolean {
    return this.#running > 0 || this.changedSession
  }

  /** Nothing comes from the body any more. */
  close(): void {
    this.#ended ??= { error: undefined }
  }

  /** Ends it before its time. */
  fail(error: unknown): void {
    if (this.#ended !== undefined) return
    this.#ended = { error }
    this.#onDeath(error)
  }

  /** Resolves when no statement of `query` and `run` is under way. */
  async idle(): Promise<void> {
    for (let last = this.#last; ; last = this.#last) {
      await last
      if (last === this.#last) return
    }
  }

  /** One after the other, unless the client sends each without waiting for the answer to the one before. */
  #send(sql: string, params: readonly unknown[]): Promise<QueryResult<SqlRow>> {
    const before = this.#pipelined ? Promise.resolve() : this.#last
    const sent = before.then(() => this.#query(sql, params))
    this.#last = Promise.all([this.#last, sent.catch(ignored)])
    return sent
  }

  async #query(sql: string, params: readonly unknown[]): Promise<QueryResult<SqlRow>> {
    this.#assertOpen()
    assertStaysOpen(this.#request.name, sql)
    if (CHANGES_SESSION.test(sql)) this.changedSession = true
    this.#running += 1
    try {
      return lastOf(await this.#client.query<SqlRow>(sql, [...params]))
    } catch (error) {
      this.refusal = { error }
      if (isPassing(error)) this.passing = { error }
      throw error
    } finally {
      this.#running -= 1
    }
  }

  #assertOpen(): void {
    if (this.#ended === undefined) return
    const { runId, name: transaction } = this.#request
    const { error } = this.#ended
    throw new TransactionClosedError({ runId, transaction }, error === undefined ? undefined : { cause: error })
  }
}

/** A text without values may be several statements, each with an answer. */
function lastOf(results: QueryResult<SqlRow> | readonly QueryResult<SqlRow>[]): QueryResult<SqlRow> {
  if (!Array.isArray(results)) return results as QueryResult<SqlRow>
  const last: QueryResult<SqlRow> | undefined = results.at(-1)
  return last ?? { rows: [], rowCount: 0, command: '', oid: 0, fields: [] }
}
