/**
 * The clock of a store: every instant that is stored, compared or waited for comes from here.
 *
 * A clock is either the host's (`real`) or one that a test moves (`mock`, see testing/mock-clock.ts).
 * Real time that is not part of the model (reconnects, lock waits, `shutdown`, `result({ timeout })`)
 * belongs to core/scheduler.ts instead.
 */

/** Milliseconds since the Unix epoch, by a store's clock. */
export type EpochMs = number

/** Something armed that can be called off. Calling it off twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void
}

/**
 * Why a timer is armed. Only `due` makes a MockClock stop at its instant; `renewal` and `poll` timers run at
 * most once at each instant it visits, renewals before what is due and polls after it, so that a claim of a
 * living process is renewed before anyone can find it expired.
 */
export type TimerRank = 'renewal' | 'due' | 'poll'

/** What a MockClock asks of those who work by it, to know when an instant has been worked off. */
export interface ClockParticipant {
  /** Grows whenever anything happens: a command, a delivery, an answer. */
  activity(): number
  /** True while work of the library's own is under way (a store call, a round, a pass about to move). */
  busy(): boolean
  /** True while a user's function runs, which may or may not end soon. */
  runningUserCode(): boolean
}

export interface Clock {
  readonly kind: 'real' | 'mock'
  /** The current instant. May step backwards on a real clock; never on a mock one. */
  now(): EpochMs
  /**
   * Calls back once `instant` has come (at once, but never synchronously, if it is past). Instants further
   * away than a native timer reaches are waited for in stages.
   */
  at(instant: EpochMs, callback: () => void, options?: { readonly rank?: TimerRank }): Timer
  /** Joins a MockClock's rounds; a real clock ignores it. Returns the way out. */
  join(participant: ClockParticipant): () => void
}

/** setTimeout fires at once, with a warning, for delays that don't fit 32 bits signed. */
const LONGEST_NATIVE_DELAY_MS = 2 ** 31 - 1

class RealClock implements Clock {
  readonly kind = 'real'

  now(): EpochMs {
    return Date.now()
  }

  at(instant: EpochMs, callback: () => void): Timer {
    let handle: NodeJS.Timeout
    const arm = (): void => {
      const delay = Math.max(0, instant - Date.now())
      handle =
        delay > LONGEST_NATIVE_DELAY_MS ? setTimeout(arm, LONGEST_NATIVE_DELAY_MS) : setTimeout(fire, Math.ceil(delay))
    }
    // Native timers may fire up to a millisecond early against Date.now(); a wake instant is never early.
    const fire = (): void => {
      if (Date.now() < instant) arm()
      else callback()
    }
    arm()
    return { cancel: () => clearTimeout(handle) }
  }

  join(): () => void {
    return () => {}
  }
}

/** The host's clock. */
export const realClock: Clock = new RealClock()
