/**
 * What waits in the commit lane: one command as the store will see it, made of one or more that callers gave.
 *
 * Adjacent checkpoints of one run under one token become one command, and the settlement that follows them takes
 * them along: a run may have one command in a batch, and its steps should not wait for a commit each. Each
 * caller still gets an answer of its own.
 */
import type { CheckpointCommand, Command, Outcome, SettleCommand } from '../../store/contract.ts'

export interface Part {
  readonly command: Command
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

export interface Entry {
  /** In the order they were given; more than one only of fenced commands of one run and token. */
  readonly parts: Part[]
  /** Commands that share a key never meet in a batch and keep their order. Without repetition. */
  readonly keys: readonly string[]
  /** The run's token, of fenced commands. */
  readonly token: string | null
  /** Counts the entries: an entry with a lower number was given earlier. */
  readonly number: number
  /** What it adds to the bounds of a batch. */
  rows: number
  textLength: number
  /** How many keys of it are still taken by earlier entries. */
  blockedBy: number
  /** Entries that wait for a key of this one. */
  readonly successors: Entry[]
  /** Has been in a batch: it must look the same when it is sent again. */
  sealed: boolean
  /** Every caller has an answer. */
  done: boolean
}

export type FencedCommand = CheckpointCommand | SettleCommand

export function isFenced(command: Command): command is FencedCommand {
  return command.type === 'checkpoint' || command.type === 'settle'
}

export function entryOf(part: Part, number: number): Entry {
  const { command } = part
  return {
    parts: [part],
    keys: keysOf(command),
    token: isFenced(command) ? command.token : null,
    number,
    rows: command.type === 'enqueue' ? Math.max(1, command.runs.length) : 1,
    textLength: textLengthOf(command),
    blockedBy: 0,
    successors: [],
    sealed: false,
    done: false,
  }
}

/** True if the command may join the entry that was given before it, with nothing of the run in between. */
export function mayJoin(entry: Entry, command: Command, maxTextLength: number): boolean {
  if (entry.sealed || entry.token === null || !isFenced(command) || command.token !== entry.token) return false
  if (entry.parts.at(-1)?.command.type !== 'checkpoint') return false
  return entry.textLength + textLengthOf(command) <= maxTextLength
}

export function join(entry: Entry, part: Part): void {
  entry.parts.push(part)
  entry.textLength += textLengthOf(part.command)
}

/** The command that the store is sent. */
export function commandOf(entry: Entry): Command {
  const commands = entry.parts.map((part) => part.command)
  const last = commands.at(-1)
  if (last === undefined) throw new Error('an entry has at least one part')
  if (commands.length === 1 || !isFenced(last)) return last
  return { ...last, entries: commands.filter(isFenced).flatMap((command) => command.entries) }
}

/** Tells each caller what became of its own command. */
export function answer(entry: Entry, outcome: Outcome): void {
  entry.done = true
  const last = entry.parts.at(-1)
  const earlier = last?.command.type === 'settle' ? beforeTheSettlement(outcome) : outcome
  for (const part of entry.parts) part.resolve(part === last ? outcome : earlier)
}

export function refuse(entry: Entry, error: unknown): void {
  entry.done = true
  for (const part of entry.parts) part.reject(error)
}

/** A checkpoint that was taken along by a settlement left its run as it was: it is the settlement that ended it. */
function beforeTheSettlement(outcome: Outcome): Outcome {
  if (outcome.type !== 'applied') return outcome
  return { type: 'applied', status: 'PENDING', ending: null, cancelRequested: false }
}

function keysOf(command: Command): readonly string[] {
  if (command.type !== 'enqueue') return [command.runId]
  const [only] = command.runs
  if (command.runs.length === 1 && only !== undefined) return [only.id]
  return [...new Set(command.runs.map((run) => run.id))]
}

/** In UTF-16 units: the bound guards memory and the length of a transaction, not a wire format. */
function textLengthOf(command: Command): number {
  let length = 0
  switch (command.type) {
    case 'enqueue':
      for (const run of command.runs) length += run.input.length
      return length
    case 'settle':
      if (command.settlement.type === 'succeed') length = command.settlement.output.length
      else if ('failure' in command.settlement) length = command.settlement.failure.error?.length ?? 0
      break
    case 'checkpoint':
      break
    default:
      return 0
  }
  for (const entry of command.entries) length += entry.value?.length ?? 0
  return length
}
