/** What `postgres()` is given, checked: where the database is, and how the store behaves in it. */
import type { Pool, PoolConfig } from 'pg'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError } from '../../core/errors.ts'
import { booleanOption, checkClock, checkOptions, textOption } from '../../core/options.ts'

export interface PostgresOptions {
  /** The schema of the store's tables, of any name. Default: 'perdure'. */
  readonly schema?: string
  /**
   * Tells other processes of new work by NOTIFY, and listens for what they tell, on one connection more. Without, they
   * look for it once per polling interval. Default: true.
   */
  readonly notify?: boolean
  /** Where to listen, if `connection` leads through a pooler that can't: the address of the server itself. */
  readonly listenUrl?: string
  /** Default: the clock of the database. */
  readonly clock?: Clock
  /** Whether opening the store creates its tables and brings them up to date. Default: true. */
  readonly migrate?: boolean
  /** Whether statements are prepared by name, which old poolers don't support. Default: true. */
  readonly prepare?: boolean
}

/** The pool of somebody else, who ends it; or what a pool of our own is made with. */
export type Source =
  | { readonly type: 'given'; readonly pool: Pool }
  | { readonly type: 'own'; readonly config: Readonly<PoolConfig> }

export interface Settings {
  /** What messages call the store; no password is in it. */
  readonly store: string
  readonly source: Source
  readonly schema: string
  readonly notify: boolean
  readonly listenUrl: string | undefined
  readonly migrate: boolean
  readonly prepare: boolean
}

const OPTIONS = ['schema', 'notify', 'listenUrl', 'clock', 'migrate', 'prepare'] as const
const URL_FORM = 'postgres://user:password@host:5432/database'
const LONGEST_NAME_BYTES = 63

export function checkSettings(connection: unknown, options: PostgresOptions): Settings {
  checkOptions('postgres', options, OPTIONS)
  if (options.clock !== undefined) checkClock('postgres.clock', options.clock)
  const { schema = 'perdure', notify = true, listenUrl, migrate = true, prepare = true } = options
  const source = checkSource(connection)
  checkSchema(schema)
  if (listenUrl !== undefined) checkUrl('postgres.listenUrl', textOption('postgres.listenUrl', listenUrl))
  const place = placeOf(source)
  return {
    store: schema === 'perdure' ? `postgres ${place}` : `postgres ${place}, schema ${schema}`,
    source,
    schema,
    notify: booleanOption('postgres.notify', notify),
    listenUrl,
    migrate: booleanOption('postgres.migrate', migrate),
    prepare: booleanOption('postgres.prepare', prepare),
  }
}

function checkSource(connection: unknown): Source {
  if (typeof connection === 'string') {
    checkUrl('postgres.connection', connection)
    return { type: 'own', config: { connectionString: connection } }
  }
  if (isPool(connection)) return { type: 'given', pool: connection }
  if (isClient(connection)) {
    throw refused('it is a client, which can do one thing at a time', 'a pg.Pool, its configuration, or a URL')
  }
  if (isConfig(connection)) {
    if (typeof connection.connectionString === 'string') checkUrl('postgres.connection', connection.connectionString)
    return { type: 'own', config: connection }
  }
  if (connection === undefined) {
    throw refused(
      'it is undefined; is the environment variable set?',
      `${URL_FORM}, a pg.Pool, or the configuration of one`,
    )
  }
  throw refused('it says no place of a database', `${URL_FORM}, a pg.Pool, or the configuration of one`)
}

function checkUrl(option: string, url: string): void {
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return
  // The text may have a password in it, so it is not repeated.
  throw new ConfigurationError({
    option,
    problem: 'the text is not the URL of a PostgreSQL database',
    allowed: URL_FORM,
  })
}

function checkSchema(schema: unknown): void {
  const name = textOption('postgres.schema', schema)
  const problem = schemaProblem(name)
  if (problem === undefined) return
  throw new ConfigurationError({ option: 'postgres.schema', problem, allowed: `1 to ${LONGEST_NAME_BYTES} bytes` })
}

function schemaProblem(name: string): string | undefined {
  // PostgreSQL would cut a longer one, so that two stores could end up in one schema.
  if (Buffer.byteLength(name) > LONGEST_NAME_BYTES) return `the name has more than ${LONGEST_NAME_BYTES} bytes`
  if (name.includes('\0')) return 'the name has a NUL character'
  if (/\p{Cs}/u.test(name)) return 'the name contains half of a surrogate pair'
  if (/^pg_/.test(name)) return "names that begin with 'pg_' are reserved for PostgreSQL"
  return undefined
}

function isPool(connection: unknown): connection is Pool {
  return hasMethods(connection, ['connect', 'query', 'end']) && 'totalCount' in connection
}

function isClient(connection: unknown): boolean {
  return hasMethods(connection, ['connect', 'query', 'end'])
}

function hasMethods(value: unknown, methods: readonly string[]): value is object {
  return (
    typeof value === 'object' && value !== null && methods.every((it) => typeof Reflect.get(value, it) === 'function')
  )
}

/** What else is in it, `pg` checks. */
function isConfig(connection: unknown): connection is PoolConfig {
  if (typeof connection !== 'object' || connection === null || Array.isArray(connection)) return false
  const prototype: unknown = Object.getPrototypeOf(connection)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function placeOf(source: Source): string {
  const { connectionString, host, port, database } = source.type === 'own' ? source.config : source.pool.options
  if (connectionString !== undefined) {
    const url = new URL(connectionString)
    return `${url.host}${url.pathname}`
  }
  const server = `${host ?? process.env['PGHOST'] ?? 'localhost'}${port === undefined ? '' : `:${port}`}`
  return `${server}/${database ?? process.env['PGDATABASE'] ?? ''}`
}

function refused(problem: string, allowed: string): ConfigurationError {
  return new ConfigurationError({ option: 'postgres.connection', problem, allowed })
}
