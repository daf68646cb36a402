/** Starts in a transaction of the caller's own: what is given for one, and the statement that makes one. */
import { ConfigurationError } from '../core/errors.ts'
import { checkOptions, choiceOption } from '../core/options.ts'
import type { CallerStarts, SqlCall, Store } from '../store/contract.ts'
import { START_OPTIONS, type StartOptions } from './start-options.ts'

/** The options of `startSql`. */
export interface StartSqlOptions extends Omit<StartOptions, 'tx'> {
  /**
   * What becomes of a conflict (the id exists with another input or definition, another run has the `dedupId`). `'tell'`:
   * the answer says so, and the transaction goes on; `'raise'`: the statement fails, and with it the transaction.
   * Default `'tell'`.
   */
  readonly onConflict?: 'tell' | 'raise'
}

/** What follows a definition or its name: a definition without input is started without one. */
export type StartSqlArgs<I> = undefined extends I
  ? [input?: I, options?: StartSqlOptions]
  : [input: I, options?: StartSqlOptions]

/**
 * A statement that starts a run, to be executed in a transaction of PostgreSQL by whatever driver. It answers with one
 * row: `id`, `newly_submitted`, and `conflict`, which is null, `'mismatch'` or `'deduplicated'`.
 */
export interface StartSql extends SqlCall {
  /** Of the run, to await it by when the transaction has been committed. */
  readonly id: string
}

export interface StartSqlItem {
  readonly input: unknown
  readonly options?: StartSqlOptions | undefined
}

/** Splits what only a statement is asked from the options of a start, which are checked as such. */
export function checkStartSql(given: StartSqlOptions | undefined): {
  readonly options: StartOptions | undefined
  readonly onConflict: 'tell' | 'raise'
} {
  if (given === undefined) return { options: undefined, onConflict: 'tell' }
  checkOptions('startSql', given, [...START_OPTIONS, 'onConflict'])
  const { onConflict = 'tell', ...options } = given
  if ('tx' in options) {
    throw new ConfigurationError({
      option: 'startSql.tx',
      problem: 'the statement is for you to execute, in whichever transaction',
      allowed: 'startSql without it, or start with it',
    })
  }
  return { options, onConflict: choiceOption('startSql.onConflict', onConflict, ['tell', 'raise'] as const) }
}

/** The transaction that all of these starts are in; undefined: none of them is in one. */
export function transactionOf(items: readonly { readonly options?: StartOptions | undefined }[]): StartOptions['tx'] {
  const tx = items[0]?.options?.tx
  if (items.every(({ options }) => options?.tx === tx)) return tx
  throw new ConfigurationError({
    option: 'startMany.tx',
    problem: 'the starts are not all in the same transaction',
    allowed: 'the same tx in the options of each, or in none',
  })
}

/** @throws ConfigurationError where the store has none. */
export function callerStartsOf({ name, callerStarts }: Store, option: string): CallerStarts {
  if (callerStarts !== undefined) return callerStarts
  throw new ConfigurationError({
    option,
    problem: `the store '${name}' can't start runs in a transaction of yours`,
    allowed: "a store in your database, made by postgres() from 'perdure/postgres'",
  })
}
