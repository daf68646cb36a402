/**
 * The commit lane: what each command does to the tables. All commands of a batch are checked before the first is
 * applied, and applying cannot fail, so a batch is applied whole or not at all.
 */
import type { EpochMs } from '../../core/clock.ts'
import type { Command, Outcome } from '../commands.ts'
import { checkEntries, checkPerformed, checkpoint, expire, perform, settle, wait } from './deliveries.ts'
import { checkEffects } from './effects.ts'
import { checkStart, enqueue } from './enqueue.ts'
import { cancel, kv, requeue, signal } from './operations.ts'
import type { Tables } from './tables.ts'

export function commit(tables: Tables, commands: readonly Command[], now: EpochMs): readonly Outcome[] {
  for (const command of commands) check(tables, command)
  return commands.map((command) => apply(tables, command, now))
}

/** What a database would refuse by its constraints. */
function check(tables: Tables, command: Command): void {
  switch (command.type) {
    case 'enqueue':
      for (const run of command.runs) checkStart(run)
      break
    case 'checkpoint':
    case 'settle':
    case 'wait':
      checkEffects(command.entries)
      checkEntries(tables, command)
      break
    case 'perform':
      if (command.action.type === 'start') checkStart(command.action.run)
      checkEffects([command.entry])
      checkPerformed(tables, command)
      break
    default:
  }
}

function apply(tables: Tables, command: Command, now: EpochMs): Outcome {
  switch (command.type) {
    case 'enqueue':
      return enqueue(tables, command.runs, command.commandId, now)
    case 'checkpoint':
      return checkpoint(tables, command, now)
    case 'settle':
      return settle(tables, command, now)
    case 'perform':
      return perform(tables, command, now)
    case 'wait':
      return wait(tables, command, now)
    case 'expire':
      return expire(tables, command)
    case 'cancel':
      return cancel(tables, command, now)
    case 'requeue':
      return requeue(tables, command, now)
    case 'signal':
      return signal(tables, command, now)
    case 'kv':
      return kv(tables, command, now)
  }
}
