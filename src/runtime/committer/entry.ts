/**
 * What waits in the commit lane: one command as the store will see it, made of one or more that callers gave.
 *
 * Adjacent checkpoints of one run under one token become one command, and the settlement that follows them takes
 * them along: a run may have one command in a batch, and its steps should not wait for a commit each. Each
 * caller still gets an answer of its own. What touches more than its run (effects, for one) stays by itself.
 */
import type { AppliedOutcome, CheckpointCommand, Command, Outcome, SettleCommand } from '../../store/contract.ts'
import { hasEffects, keysOf } from './keys.ts'
import { textLengthOf } from './text-length.ts'

export interface Part {
  readonly command: Command
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

export interface Entry {
  /** In the order they were given; more than one only of checkpoints of one run and token, and a settlement last. */
  readonly parts: Part[]
  /**
   * Commands that share a key never meet in a batch and keep their order. Without repetition; of a fenced command
   * its run comes first.
   */
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
  /** Every caller has an answer, or will have that of an entry that stands in for this one. */
  done: boolean
  /** Called once it is done; null: it was applied, or found its claim lost. */
  readonly whenDone: ((refusal: { readonly error: unknown } | null) => void)[]
}

/** Commands that can be merged. */
type JoiningCommand = CheckpointCommand | SettleCommand

export function mayBeMerged(command: Command): command is JoiningCommand {
  return command.type === 'checkpoint' || command.type === 'settle'
}

export function entryOf(part: Part, number: number): Entry {
  const { command } = part
  const keys = keysOf(command)
  return {
    parts: [part],
    keys,
    token: 'token' in command ? command.token : null,
    number,
    rows: Math.max(1, keys.length),
    textLength: textLengthOf(command),
    blockedBy: 0,
    successors: [],
    sealed: false,
    done: false,
    whenDone: [],
  }
}

/** True if the command may join the entry that was given before it, with nothing of the run in between. */
export function mayJoin(entry: Entry, command: JoiningCommand, maxTextLength: number): boolean {
  if (entry.sealed || entry.token !== command.token || entry.keys.length > 1) return false
  if (entry.parts.at(-1)?.command.type !== 'checkpoint') return false
  if (command.entries.some(hasEffects)) return false
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
  if (commands.length === 1 || !mayBeMerged(last)) return last
  return { ...last, entries: commands.filter(mayBeMerged).flatMap((command) => command.entries) }
}

/** Tells each caller what became of its own command. */
export function answer(entry: Entry, outcome: Outcome): void {
  entry.done = true
  const last = entry.parts.at(-1)
  const earlier = last?.command.type === 'settle' ? beforeTheSettlement(outcome) : outcome
  for (const part of entry.parts) part.resolve(part === last ? outcome : earlier)
  for (const tell of entry.whenDone) tell(null)
}

export function refuse(entry: Entry, error: unknown): void {
  entry.done = true
  for (const part of entry.parts) part.reject(error)
  for (const tell of entry.whenDone) tell({ error })
}

const WENT_ON: AppliedOutcome = {
  type: 'applied',
  status: 'PENDING',
  ending: null,
  cancelRequested: false,
  dueAt: null,
  rippled: false,
  refusals: [],
}

/** A checkpoint that was taken along by a settlement left its run as it was: it is the settlement that ended it. */
function beforeTheSettlement(outcome: Outcome): Outcome {
  return outcome.type === 'applied' ? WENT_ON : outcome
}
