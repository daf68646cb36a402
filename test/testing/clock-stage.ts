/** What the tests of the MockClock play with: timers that write down what fired, and participants that work. */
import type { ClockParticipant, TimerRank } from '../../src/core/clock.ts'
import { realScheduler } from '../../src/core/scheduler.ts'
import type { MockClock } from '../../src/testing/mock-clock.ts'

export const START = 1_000_000

/** Writes down what fired, and when. */
export function recorded(clock: MockClock) {
  const log: string[] = []
  const arm = (name: string, instant: number, rank?: TimerRank, then?: () => void) =>
    clock.at(
      instant,
      () => {
        log.push(`${name}@${clock.now() - START}`)
        then?.()
      },
      rank === undefined ? {} : { rank },
    )
  return { log, arm }
}

/** Work of the library's own: each piece takes some turns of the loop, and counts as activity when it ends. */
export class Worker implements ClockParticipant {
  #activity = 0
  #busy = 0
  #userCode = 0

  activity(): number {
    return this.#activity
  }

  busy(): boolean {
    return this.#busy > 0
  }

  runningUserCode(): boolean {
    return this.#userCode > 0
  }

  async work(turns: number, body: () => void = () => {}): Promise<void> {
    this.#busy += 1
    for (let turn = 0; turn < turns; turn++) await realScheduler.turn()
    body()
    this.#activity += 1
    this.#busy -= 1
  }

  async userCode(body: () => Promise<void>): Promise<void> {
    this.#userCode += 1
    this.#activity += 1
    await body()
    this.#activity += 1
    this.#userCode -= 1
  }

  happened(): void {
    this.#activity += 1
  }
}

export function realPause(ms: number): Promise<void> {
  return new Promise((resolve) => void realScheduler.after(ms, resolve))
}
