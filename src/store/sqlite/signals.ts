/** Sending a signal: to the run that waits for it, or into the buffer. */
import type { SignalOutcome } from '../commands.ts'
import type { EncodedValue } from '../records.ts'
import { wake } from './apply.ts'
import { runAt } from './runs.ts'
import type { Transaction } from './transaction.ts'
import { bufferSignal, findOpenWaits, resolveWait } from './waits.ts'

export function sendSignal(transaction: Transaction, key: string, payload: EncodedValue): SignalOutcome {
  const { database } = transaction
  const waits = findOpenWaits(database, key)
  const [first] = waits
  if (first === undefined) return { type: bufferSignal(database, key, payload) ? 'replaced' : 'buffered' }
  for (const wait of waits) resolveWait(database, wait, { state: 'signalled', payload })
  const run = runAt(database, first.run)
  wake(transaction, run)
  transaction.ripples += 1
  return { type: 'delivered', runId: run.id, woken: run.status === 'WAITING' }
}
