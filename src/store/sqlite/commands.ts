/**
 * The commit lane: what each command does, inside the transaction of its batch. A command that is refused has
 * changed nothing; one that throws takes the batch with it.
 */
import { realScheduler } from '../../core/scheduler.ts'
import type { Command, Outcome } from '../commands.ts'
import type { Database } from './database.ts'
import { checkpoint, expire, perform, settle, wait } from './deliveries.ts'
import { enqueue } from './enqueue.ts'
import { cancel, kv, requeue, signal } from './operations.ts'
import { Transaction } from './transaction.ts'

/** A transaction blocks the event loop of its process, so it ends after about this long. */
export const LONGEST_WORK_MS = 8

/** Applies commands, in order, until the time is up: at least one. */
export function applyBatch(database: Database, commands: readonly Command[]): readonly Outcome[] {
  const start = realScheduler.monotonic()
  const transaction = new Transaction(database)
  const outcomes: Outcome[] = []
  for (const command of commands) {
    outcomes.push(apply(transaction, command))
    if (realScheduler.monotonic() - start >= LONGEST_WORK_MS) break
  }
  return outcomes
}

function apply(transaction: Transaction, command: Command): Outcome {
  switch (command.type) {
    case 'enqueue':
      return enqueue(transaction, command)
    case 'checkpoint':
      return checkpoint(transaction, command)
    case 'settle':
      return settle(transaction, command)
    case 'perform':
      return perform(transaction, command)
    case 'wait':
      return wait(transaction, command)
    case 'expire':
      return expire(transaction, command)
    case 'cancel':
      return cancel(transaction, command)
    case 'requeue':
      return requeue(transaction, command)
    case 'signal':
      return signal(transaction, command)
    case 'kv':
      return kv(transaction, command)
  }
}
