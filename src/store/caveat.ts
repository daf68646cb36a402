/** What will not happen to a run as its caller may think, by what is known of its queue; shared by every store. */
import type { StartCaveat } from './commands.ts'
import type { QueueKnobs, RunRecord } from './records.ts'

/** `queue`: null for the internal one, and for one that is not registered, of which nothing is known yet. */
export function startCaveat(
  run: Pick<RunRecord, 'queue' | 'partitionKey' | 'priority'>,
  queue: Pick<QueueKnobs, 'partitioned' | 'priorityEnabled'> | null,
): StartCaveat | null {
  if (run.queue === null) return run.priority === 0 ? null : 'priorityIgnored'
  if (queue === null) return null
  if (queue.partitioned && run.partitionKey === null) return 'keyless'
  if (!queue.partitioned && run.partitionKey !== null) return 'partitionKeyIgnored'
  return run.priority !== 0 && !queue.priorityEnabled ? 'priorityIgnored' : null
}
