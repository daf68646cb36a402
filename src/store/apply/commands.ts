/**
 * The commit lane: what each command does to the rows. All commands of a batch are checked before the first is
 * applied, and applying cannot fail, so a batch is applied whole or not at all.
 */
import type { EpochMs } from '../../core/clock.ts'
import type { Command, Outcome } from '../commands.ts'
import { checkEntries, checkPerformed, checkpoint, expire, perform, settle, wait } from './deliveries.ts'
import { checkEffects } from './effects.ts'
import { checkStart, enqueue } from './enqueue.ts'
import { cancel, kv, requeue, signal } from './operations.ts'
import type { Rows } from './rows.ts'

export function commit(rows: Rows, commands: readonly Command[], now: EpochMs): readonly Outcome[] {
  for (const command of commands) check(rows, command)
  return commands.map((command) => apply(rows, command, now))
}

/** What a database would refuse by its constraints. */
function check(rows: Rows, command: Command): void {
  switch (command.type) {
    case 'enqueue':
      for (const run of command.runs) checkStart(run)
      break
    case 'checkpoint':
    case 'settle':
    case 'wait':
      checkEffects(command.entries)
      checkEntries(rows, command)
      break
    case 'perform':
      if (command.action.type === 'start') checkStart(command.action.run)
      checkEffects([command.entry])
      checkPerformed(rows, command)
      break
    default:
  }
}

function apply(rows: Rows, command: Command, now: EpochMs): Outcome {
  switch (command.type) {
    case 'enqueue':
      return enqueue(rows, command.runs, command.commandId, now)
    case 'checkpoint':
      return checkpoint(rows, command, now)
    case 'settle':
      return settle(rows, command, now)
    case 'perform':
      return perform(rows, command, now)
    case 'wait':
      return wait(rows, command, now)
    case 'expire':
      return expire(rows, command)
    case 'cancel':
      return cancel(rows, command, now)
    case 'requeue':
      return requeue(rows, command, now)
    case 'signal':
      return signal(rows, command, now)
    case 'kv':
      return kv(rows, command, now)
  }
}
