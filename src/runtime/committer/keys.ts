/**
 * What a command of a batch may share with no other: everything it changes that others can name. The key of a run is
 * its id; keys of other things begin with a control character, which no run id has.
 */
import type { Command, Effect, NewCheckpoint, NewRun } from '../../store/contract.ts'

/** Without repetition; of a fenced command its run comes first. */
export function keysOf(command: Command): readonly string[] {
  switch (command.type) {
    case 'checkpoint':
    case 'settle':
      return ofEntries(command.runId, command.entries)
    case 'enqueue':
      return ofStarts(command.runs)
    case 'perform':
      return command.action.type === 'start'
        ? distinct([command.runId, ...ofStart(command.action.run)])
        : [command.runId, ofSignal(command.action.key)]
    case 'wait':
      return [command.runId, ofSignal(command.key)]
    case 'signal':
      return [ofSignal(command.key)]
    case 'kv':
      return [ofKv(command.change.key)]
    default:
      return [command.runId]
  }
}

export function hasEffects({ effects }: NewCheckpoint): boolean {
  return effects !== undefined && effects.length > 0
}

function ofEntries(runId: string, entries: readonly NewCheckpoint[]): readonly string[] {
  if (!entries.some(hasEffects)) return [runId]
  return distinct([runId, ...entries.flatMap(({ effects = [] }) => effects.flatMap(ofEffect))])
}

function ofEffect(effect: Effect): readonly string[] {
  switch (effect.type) {
    case 'put':
    case 'delete':
      return [ofKv(effect.key)]
    case 'start':
      return ofStart(effect.run)
    case 'signal':
      return [ofSignal(effect.key)]
  }
}

function ofStarts(runs: readonly NewRun[]): readonly string[] {
  const [only] = runs
  return runs.length === 1 && only !== undefined ? ofStart(only) : distinct(runs.flatMap(ofStart))
}

function ofStart({ id, queue, dedup, kv }: NewRun): readonly string[] {
  if (dedup === null && kv.length === 0) return [id]
  const keys = distinct([id, ...kv.map(({ key }) => ofKv(key))])
  // Neither part has a control character in it, so no two pairs give one text.
  if (dedup !== null) keys.push(`\u0001dedup\u0001${queue ?? ''}\u0001${dedup.id}`)
  return keys
}

function ofKv(key: string): string {
  return `\u0001kv\u0001${key}`
}

function ofSignal(key: string): string {
  return `\u0001signal\u0001${key}`
}

function distinct(keys: readonly string[]): string[] {
  return [...new Set(keys)]
}
