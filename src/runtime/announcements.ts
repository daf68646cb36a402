/**
 * What others of this process may want to know of a command that was committed: whoever claims, waits for an end or
 * a signal, or works on a run that is to be cancelled.
 */
import type { EpochMs } from '../core/clock.ts'
import type {
  AppliedOutcome,
  CancelCommand,
  Command,
  EnqueueCommand,
  EnqueueOutcome,
  NewCheckpoint,
  NewRun,
  Outcome,
  PerformCommand,
  PerformOutcome,
  SettleCommand,
  SignalOutcome,
} from '../store/contract.ts'
import { isTerminal } from '../store/records.ts'
import type { Notice } from './notices.ts'

type Emit = (notice: Notice) => void

/** `now`: an instant after the commit. */
export function announce(command: Command, outcome: Outcome, now: EpochMs, emit: Emit): void {
  switch (outcome.type) {
    case 'applied':
      if (outcome.rippled && 'entries' in command) rippled(command.entries, outcome, emit)
      if (command.type === 'settle') settled(command, outcome, now, emit)
      break
    case 'accepted':
      if (command.type === 'enqueue') accepted(command, outcome, now, emit)
      break
    case 'performed':
      if (command.type === 'perform') performed(command, outcome, now, emit)
      break
    case 'delivered':
      delivered(outcome, emit)
      break
    case 'requeued':
      emit({ type: 'claimable' })
      break
    case 'requested':
      if (outcome.token !== null) emit({ type: 'cancelRequested', token: outcome.token })
      break
    case 'cancelled':
      if (command.type === 'cancel') cancelled(command, outcome.rippled, emit)
      break
    default:
      break
  }
}

function accepted(
  { runs }: EnqueueCommand,
  outcome: EnqueueOutcome & { readonly type: 'accepted' },
  now: EpochMs,
  emit: Emit,
): void {
  let isClaimable = false
  let dueAt = Number.POSITIVE_INFINITY
  for (const [index, { created, status, caveat }] of outcome.runs.entries()) {
    if (!created) continue
    if (status === 'ENQUEUED' && caveat !== 'keyless') isClaimable = true
    if (status === 'DELAYED') dueAt = Math.min(dueAt, dueInstant(runs[index], now) ?? dueAt)
  }
  if (isClaimable) emit({ type: 'claimable' })
  if (dueAt < Number.POSITIVE_INFINITY) emit({ type: 'due', dueAt })
}

/** Of a delay, the store counted from an earlier instant, by the time that the commit took. */
function dueInstant(run: NewRun | undefined, now: EpochMs): EpochMs | null {
  if (run === undefined || run.due === null) return null
  return run.due.type === 'at' ? run.due.instant : now + run.due.ms
}

function performed(
  { action }: PerformCommand,
  outcome: PerformOutcome & { readonly type: 'performed' },
  now: EpochMs,
  emit: Emit,
): void {
  if (action.type === 'start') {
    const dueAt = dueInstant(action.run, now)
    emit(dueAt === null || dueAt <= now ? { type: 'claimable' } : { type: 'due', dueAt })
    // The value of a signal is a word: who had it delivered isn't told.
  } else if (outcome.value === '"delivered"') signalled(emit)
}

/** To a run that isn't known, which may have been suspended. */
function signalled(emit: Emit): void {
  emit({ type: 'signalled', runId: null })
  emit({ type: 'claimable' })
}

/**
 * Only a cancellation ends others, or asks them to end. All else that ripples makes runs claimable (follow-ups, parents
 * that waited) or brings them signals: no reason to ask for every end that is awaited.
 */
function rippled(entries: readonly NewCheckpoint[], { status }: AppliedOutcome, emit: Emit): void {
  if (status === 'CANCELLED') emit({ type: 'changed' })
  else if (entries.some(({ effects = [] }) => effects.some(({ type }) => type === 'signal'))) signalled(emit)
  else emit({ type: 'claimable' })
}

function delivered({ runId, woken }: SignalOutcome & { readonly type: 'delivered' }, emit: Emit): void {
  emit({ type: 'signalled', runId })
  if (woken) emit({ type: 'claimable' })
}

function cancelled({ runId }: CancelCommand, rippled: boolean, emit: Emit): void {
  emit({ type: 'ended', runId, ending: { status: 'CANCELLED', failure: { kind: 'cancelled', error: null } } })
  // If it was WAITING, it has left room to others of its queue.
  emit({ type: rippled ? 'changed' : 'claimable' })
}

function settled({ runId }: SettleCommand, outcome: AppliedOutcome, now: EpochMs, emit: Emit): void {
  const { ending, status, dueAt } = outcome
  if (ending !== null) emit({ type: 'ended', runId, ending })
  // A resend is not told with what the run has ended: whoever waits has to ask.
  else if (isTerminal(status)) emit({ type: 'changed' })
  else if (status === 'ENQUEUED') emit({ type: 'claimable' })
  else if (dueAt !== null) emit(dueAt <= now ? { type: 'claimable' } : { type: 'due', dueAt })
}
