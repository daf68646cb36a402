/** Whether other processes may wait for what a command did: for work, for room in a queue, for the end of a run. */
import type { Command, Outcome } from '../commands.ts'

export function concernsOthers(command: Command | undefined, outcome: Outcome): boolean {
  switch (outcome.type) {
    case 'accepted':
      // What is claimed by its own start is nobody else's.
      return outcome.runs.some(({ created }, n) => created && startsFree(command, n))
    case 'applied':
      return command?.type === 'settle' || outcome.rippled
    case 'performed':
    case 'cancelled':
    case 'requested':
    case 'requeued':
    case 'delivered':
      return true
    default:
      return false
  }
}

function startsFree(command: Command | undefined, index: number): boolean {
  return command?.type !== 'enqueue' || command.runs[index]?.claim === null
}
