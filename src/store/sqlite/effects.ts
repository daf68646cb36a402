/** What a run does besides itself: staged effects, and actions that the store carries out for a durable call. */
import type { Action, Effect, Refusal } from '../commands.ts'
import type { EncodedValue } from '../records.ts'
import { startOne } from './enqueue.ts'
import { changeValue } from './kv.ts'
import { sendSignal } from './signals.ts'
import type { Transaction } from './transaction.ts'

/** Names the entry that starts a run, as a command of its own would be named. */
export function startIdOf(token: string, { seq }: { readonly seq: number }): string {
  return `${token}:${seq}`
}

/** Answers why it was refused, if it was. */
export function applyEffect(transaction: Transaction, effect: Effect, startId: string): Refusal | null {
  switch (effect.type) {
    case 'put':
    case 'delete':
      changeValue(transaction.database, effect)
      return null
    case 'signal':
      sendSignal(transaction, effect.key, effect.payload)
      return null
    case 'start': {
      const start = startOne(transaction, effect.run, startId)
      if (start.type !== 'accepted') return start
      if (start.run.created) transaction.ripples += 1
      return null
    }
  }
}

/** The value that its entry gets, or why it is refused. */
export function act(
  transaction: Transaction,
  action: Action,
  startId: string,
): { readonly type: 'done'; readonly value: EncodedValue } | { readonly type: 'refused'; readonly refusal: Refusal } {
  if (action.type === 'signal') {
    const { type } = sendSignal(transaction, action.key, action.payload)
    return { type: 'done', value: JSON.stringify(type) }
  }
  const start = startOne(transaction, action.run, startId)
  if (start.type !== 'accepted') return { type: 'refused', refusal: start }
  const { id, created } = start.run
  return { type: 'done', value: JSON.stringify({ id, created }) }
}
