/**
 * Starts in a transaction of the caller's: what its client is asked to run, and what that answers. What happens is said
 * by the functions themselves (migrations/start.ts).
 */

import type { EpochMs } from '../../core/clock.ts'
import { ConfigurationError } from '../../core/errors.ts'
import { invariant } from '../../core/invariant.ts'
import { text, textOrNull, word } from '../columns.ts'
import type { AcceptedRun, EnqueueOutcome, NewRun, StartCaveat } from '../commands.ts'
import type { CallerStarts } from '../contract.ts'
import { toStatus } from './runs.ts'
import { quoted } from './statements.ts'
import { missesSchema } from './trouble.ts'

interface CallerStartsOptions {
  /** The name of the schema as a text of SQL has it. */
  readonly schema: string
  /** Who listens for new work; null: nobody is told. */
  readonly channel: string | null
  /** null: by the database's own clock. */
  readonly now: () => EpochMs | null
}

/** The row that a start answers with; a driver may know more of it. */
type Answer = Readonly<Record<string, unknown>>

export function callerStarts(options: CallerStartsOptions): CallerStarts {
  const { schema } = options
  const startAll = `select id, newly_submitted, conflict, status, definition, caveat from ${schema}.start_runs($1)`
  const [before, after] = [`select id, newly_submitted, conflict from ${schema}.start_run(`, ')']
  return {
    start: async (tx, runs, startId) => {
      const query = queryOf(tx)
      const asked = JSON.stringify(runs.map((run) => toJson(run, { ...options, startId })))
      return outcomeOf(runs, answersIn(await query(startAll, [asked])))
    },
    sql: (run, startId, onConflict) => ({
      text: `${before}$1${after}`,
      values: [JSON.stringify(toJson(run, { ...options, startId, onConflict }))],
      strings: templateStrings([before, after]),
    }),
  }
}

/**
 * A quoted name, in which no driver finds what it takes for a placeholder of a value: `?` is one to some, `$1` and `:a`
 * only outside of quotes.
 */
export function quotedForDrivers(schema: string): string {
  const name = quoted(schema)
  return name.includes('?') ? `U&${name.replaceAll('\\', '\\\\').replaceAll('?', '\\003F')}` : name
}

interface Circumstances extends CallerStartsOptions {
  readonly startId: string
  readonly onConflict?: 'tell' | 'raise'
}

/** As `start_run` reads it. A claim is not among it: a run that may never be committed is begun by nobody. */
function toJson(run: NewRun, { startId, onConflict, channel, now }: Circumstances): object {
  const { id, definition, kind, priority, partitionKey, dedup, due, input, inputHash, maxRecoveries, timeoutMs, kv } =
    run
  invariant(run.parentId === null, `run ${id} is nobody's child`)
  return {
    ...{ id, definition, kind, queue: run.queue, priority, partitionKey, input, inputHash, maxRecoveries, timeoutMs },
    ...(dedup === null ? {} : { dedupId: dedup.id, dedupPolicy: dedup.policy }),
    ...(due === null ? {} : due.type === 'at' ? { at: due.instant } : { afterMs: due.ms }),
    kv: kv.map(({ key, value, hash }) => ({ key, value, hash })),
    ...{ startId, onConflict, channel, now: now() },
  }
}

function outcomeOf(runs: readonly NewRun[], answers: readonly Answer[]): EnqueueOutcome {
  const accepted: AcceptedRun[] = []
  for (const [index, answer] of answers.entries()) {
    const run = runs[index]
    if (run === undefined) throw notRows()
    const id = text(answer['id'])
    if (answer['conflict'] === 'mismatch')
      return { type: 'mismatch', id: run.id, definition: text(answer['definition']) }
    if (answer['conflict'] === 'deduplicated') {
      const { queue, dedup } = run
      invariant(queue !== null && dedup !== null, `run ${run.id} was refused for a deduplication id that it has not`)
      return { type: 'deduplicated', id: run.id, queue, dedupId: dedup.id, holder: id }
    }
    const caveat = textOrNull(answer['caveat'] ?? null)
    accepted.push({
      id,
      created: answer['newly_submitted'] === true,
      status: toStatus(answer['status']),
      caveat: caveat === null ? null : toCaveat(caveat),
    })
  }
  if (accepted.length !== runs.length) throw notRows()
  return { type: 'accepted', runs: accepted }
}

const toCaveat = word<StartCaveat>(['keyless', 'partitionKeyIgnored', 'priorityIgnored'])

/** What a client of `pg` has, and many others. */
type Query = (text: string, values: unknown[]) => unknown

function queryOf(tx: unknown): (text: string, values: unknown[]) => Promise<unknown> {
  if (!isClient(tx)) throw noClient('it has no query(text, values)')
  // What goes through a pool may go through any connection.
  if ('totalCount' in tx && 'idleCount' in tx) throw noClient('it is a pool, whose queries are in no transaction')
  return async (sql, values) => {
    try {
      return await tx.query(sql, values)
    } catch (error) {
      if (!missesSchema(error)) throw error
      throw noClient('it leads to a database, or a server, without the schema of the store', error)
    }
  }
}

function isClient(tx: unknown): tx is { readonly query: Query } {
  if ((typeof tx !== 'object' && typeof tx !== 'function') || tx === null) return false
  return 'query' in tx && typeof tx.query === 'function'
}

function answersIn(result: unknown): readonly Answer[] {
  const rows: unknown = typeof result === 'object' && result !== null && 'rows' in result ? result.rows : result
  if (!Array.isArray(rows) || !rows.every(isAnswer)) throw notRows()
  return rows
}

function isAnswer(row: unknown): row is Answer {
  return typeof row === 'object' && row !== null && 'id' in row && 'newly_submitted' in row
}

function noClient(problem: string, cause?: unknown): ConfigurationError {
  const allowed =
    'the client of `pg` that your transaction runs on, as pool.connect() gives it; for other drivers startSql'
  return new ConfigurationError({ option: 'start.tx', problem, allowed }, { cause })
}

function notRows(): ConfigurationError {
  const problem = 'its query(text, values) does not answer with rows, as the clients of `pg` do'
  return new ConfigurationError({
    option: 'start.tx',
    problem,
    allowed: 'a client of `pg`; for other drivers startSql',
  })
}

/** As a tag of a template is given them: drivers know one by `raw`. */
function templateStrings(strings: readonly string[]): TemplateStringsArray {
  return Object.freeze(Object.assign([...strings], { raw: Object.freeze([...strings]) }))
}
