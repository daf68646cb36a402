/**
 * The commit lane: a batch of commands in one transaction (commit/lock.ts says what it locks and why nothing is lost).
 *
 * Locked, read, applied in memory by the same code as in `memory()`, and written back by a few statements, whatever the
 * size of the batch. What becomes of commands whose rows somebody else has locked for long is said in blocked.ts.
 */
import { commit as applyAll } from '../apply/commands.ts'
import type { Command, Outcome } from '../commands.ts'
import { prepare } from './commit/prepare.ts'
import { writeLast } from './commit/write.ts'
import type { Database, WriteOptions } from './database.ts'

type Writable = Pick<Database, 'write'>

/** One transaction. Rejects with LockedError if it has waited too long for a lock. */
export function commit(
  database: Writable,
  commands: readonly Command[],
  options?: WriteOptions,
): Promise<readonly Outcome[]> {
  return database.write(async (transaction) => {
    const { rows, now } = await prepare(transaction, commands)
    const outcomes = applyAll(rows, commands, now)
    await writeLast(transaction, rows, now)
    return outcomes
  }, options)
}
