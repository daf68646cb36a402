/** Keys that another transaction has taken since this one has looked for them. */
import { Interference } from './session.ts'
import { sqlState } from './trouble.ts'

const UNIQUE_VIOLATION = '23505'

/** Rejects with Interference if a statement has met a key that is taken. */
export async function insertedUnless(inserted: Promise<unknown>, taken: string): Promise<void> {
  try {
    await inserted
  } catch (error) {
    throw sqlState(error) === UNIQUE_VIOLATION ? new Interference(taken) : error
  }
}
