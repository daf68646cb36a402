/** What a user's transaction must not be told by its body: it is the store's to begin and to end. */
import { ConfigurationError } from '../core/errors.ts'

const IGNORED = String.raw`(?:\s|;|--[^\n]*(?:\n|$)|/\*[\s\S]*?\*/)*`
const VERBS = String.raw`(?:begin|start\s+transaction|commit|end|abort|prepare\s+transaction|rollback(?!\s+(?:transaction\s+|work\s+)?to\b))`
const MOVES = new RegExp(`^${IGNORED}${VERBS}\\b`, 'i')

/** Refuses a statement that would end the transaction, or begin another. Savepoints are allowed. */
export function assertStaysOpen(transaction: string, sql: string): void {
  if (!MOVES.test(sql)) return
  throw new ConfigurationError({
    option: `transaction '${transaction}'`,
    problem: `${JSON.stringify(sql.slice(0, 40))} would end its transaction`,
    allowed: 'savepoints; to roll back, throw',
  })
}
