/** Reading the instant, where no statement does so on the way. */
import type { EpochMs } from '../../core/clock.ts'
import { DatabaseClock } from './clock.ts'
import type { Database } from './database.ts'
import type { Transaction } from './session.ts'
import { NOW } from './session.ts'

export const READ_NOW = `select ${NOW}`

export async function readInstant(transaction: Transaction): Promise<EpochMs> {
  const [row] = await transaction.query(READ_NOW)
  return transaction.instant(row?.[0])
}

/** For statements that read the instant themselves; null: from the database's own clock. */
export function givenInstant({ clock }: Database): EpochMs | null {
  return clock instanceof DatabaseClock ? null : clock.now()
}
