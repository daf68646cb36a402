/** What a start throws that the store has refused, wherever it was made: outside, or in a body. */
import { InputMismatchError, QueueDeduplicatedError } from '../core/errors.ts'
import type { Refusal } from '../store/commands.ts'

/** `definition`: of the run that was asked for. */
export function refusalError(refusal: Refusal, definition: string): InputMismatchError | QueueDeduplicatedError {
  if (refusal.type === 'deduplicated') {
    const { queue, dedupId, holder } = refusal
    return new QueueDeduplicatedError({ queue, dedupId, holder })
  }
  const { id: runId, definition: existingDefinition } = refusal
  return new InputMismatchError({ runId, definition, existingDefinition })
}
