/** The ledger of starts of each lane, for rate limits (store/limits.ts says how they are counted). */
import type { EpochMs } from '../../core/clock.ts'
import type { RateLimit, RateRoom } from '../limits.ts'
import { rateRoom } from '../limits.ts'

export class Ledger {
  readonly #queues = new Map<string, Map<string, EpochMs[]>>()
  /** Of all lanes of a queue. */
  readonly #newest = new Map<string, EpochMs>()

  /** Whether one more run of the lane may start now. */
  room(queue: string, lane: string, rate: RateLimit, now: EpochMs): RateRoom {
    const starts = this.#queues.get(queue)?.get(lane) ?? []
    const count = Math.min(rate.limit, starts.length)
    const oldest = starts.slice(starts.length - count, starts.length - count + 1)
    return rateRoom(rate, { count, oldest: oldest.map((startedAt) => Math.min(startedAt, now)) }, 1, now)
  }

  /** Dates starts that lie in the future, as the clock was set back, to now. */
  redate(queue: string, now: EpochMs): void {
    if ((this.#newest.get(queue) ?? now) <= now) return
    this.#newest.set(queue, now)
    for (const starts of this.#queues.get(queue)?.values() ?? []) {
      for (let n = starts.length - 1; n >= 0 && (starts[n] ?? now) > now; n--) starts[n] = now
    }
  }

  record(queue: string, lane: string, rate: RateLimit, now: EpochMs): void {
    const lanes = this.#queues.get(queue) ?? new Map<string, EpochMs[]>()
    const starts = lanes.get(lane) ?? []
    this.#queues.set(queue, lanes.set(lane, starts))
    starts.push(now)
    this.#newest.set(queue, now)
    let past = 0
    while (starts.length - past > rate.limit && (starts[past] ?? now) + rate.periodMs <= now) past += 1
    starts.splice(0, past)
  }
}
