/**
 * How much text a command brings to a batch, in UTF-16 units: the bound guards memory and the length of a transaction,
 * not a wire format. Names and keys are short, and are not counted.
 */
import type { Command, Effect, NewCheckpoint, NewRun, Settlement } from '../../store/contract.ts'

export function textLengthOf(command: Command): number {
  switch (command.type) {
    case 'enqueue':
      return sum(command.runs, ofStart)
    case 'settle':
      return ofEntries(command.entries) + ofSettlement(command.settlement)
    case 'checkpoint':
    case 'wait':
      return ofEntries(command.entries)
    case 'perform':
      return command.action.type === 'start' ? ofStart(command.action.run) : command.action.payload.length
    case 'signal':
      return command.payload.length
    case 'kv':
      return 'value' in command.change ? command.change.value.length : 0
    default:
      return 0
  }
}

function ofEntries(entries: readonly NewCheckpoint[]): number {
  let length = 0
  for (const { value, effects } of entries) {
    if (value !== null) length += value.length
    if (effects !== undefined) length += sum(effects, ofEffect)
  }
  return length
}

function ofSettlement(settlement: Settlement): number {
  if (settlement.type === 'succeed') return settlement.output.length
  return 'failure' in settlement ? (settlement.failure.error?.length ?? 0) : 0
}

function ofEffect(effect: Effect): number {
  switch (effect.type) {
    case 'put':
      return effect.value.length
    case 'delete':
      return 0
    case 'start':
      return ofStart(effect.run)
    case 'signal':
      return effect.payload.length
  }
}

function ofStart({ input, kv }: NewRun): number {
  return input.length + sum(kv, ({ value }) => value.length)
}

function sum<T>(items: readonly T[], lengthOf: (item: T) => number): number {
  let length = 0
  for (const item of items) length += lengthOf(item)
  return length
}
