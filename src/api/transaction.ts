/** `ctx.transaction` as users see it: its options, and what its function is given. */
import { ConfigurationError } from '../core/errors.ts'
import { checkOptions, choiceOption } from '../core/options.ts'
import type { Attempt } from '../runtime/replay/attempts.ts'
import type { Transactions } from '../runtime/replay/port.ts'
import type { TransactionWork } from '../runtime/replay/transaction.ts'
import type { IsolationLevel } from '../store/contract.ts'
import { ATTEMPT_OPTIONS, attemptPolicy, type StepOptions } from './step-options.ts'

export type { IsolationLevel }

export interface TransactionOptions extends StepOptions {
  /**
   * Of a transaction on PostgreSQL; default 'read committed'. Transactions on SQLite run one after the other, so there it
   * is refused.
   */
  readonly isolationLevel?: IsolationLevel
}

/**
 * What the function of a transaction is given: the store's database, with whatever tables there are. Of no use once the
 * function has returned: each call then throws a TransactionClosedError.
 *
 * SQL is that of the database, with its placeholders: `?` on SQLite, `$1` on PostgreSQL. Tables and functions whose
 * names begin with `perdure` are the store's: leave them alone. So is the transaction itself: `commit`, `rollback` and
 * `begin` are not for the function (savepoints are); to roll back, throw.
 */
export interface SqlTransaction extends Attempt {
  /** Runs one statement and resolves to its rows, by the names of their columns. `Row` is what the caller says they are. */
  query<Row = Record<string, unknown>>(sql: string, params?: readonly unknown[]): Promise<Row[]>
  /** Runs one statement and resolves to how many rows it has changed. */
  run(sql: string, params?: readonly unknown[]): Promise<{ readonly changes: number }>
  /**
   * The driver's own object, to be given to a query builder: on PostgreSQL the client of `pg` that the transaction is on,
   * on SQLite the database of `better-sqlite3` or `node:sqlite`. Not to be released, closed or kept.
   */
  readonly native: unknown
}

const NEEDS_SQL = "a store with SQL: sqlite() of 'perdure/sqlite', postgres() of 'perdure/postgres'"

/** @throws ConfigurationError, InvalidDurationError */
export function transactionWork(
  name: string,
  options: TransactionOptions = {},
  {
    body,
    transactions,
  }: { readonly body: (tx: SqlTransaction) => unknown; readonly transactions: Transactions | undefined },
): TransactionWork {
  const what = `transaction '${name}'`
  if (transactions === undefined) {
    throw new ConfigurationError({ option: what, problem: 'the store of this engine has no SQL', allowed: NEEDS_SQL })
  }
  checkOptions(what, options, [...ATTEMPT_OPTIONS, 'isolationLevel'])
  const isolationLevel = isolation(what, options.isolationLevel, transactions.isolationLevels)
  return { policy: attemptPolicy(what, options), isolationLevel, body }
}

function isolation(
  what: string,
  asked: IsolationLevel | undefined,
  levels: readonly IsolationLevel[],
): IsolationLevel | null {
  if (asked === undefined) return null
  if (levels.length > 0) return choiceOption(`${what}.isolationLevel`, asked, levels)
  const problem = 'transactions of this store run one after the other, and have no levels of isolation'
  throw new ConfigurationError({ option: `${what}.isolationLevel`, problem, allowed: 'to leave it out' })
}
