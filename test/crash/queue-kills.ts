/** Workers and a producer on one store, killed at random moments; then what they did is held against the limits. */
import { setTimeout } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Child } from './processes.ts'
import { accountOf, beginnings, tightestWindow } from './queue-account.ts'
import { startProgram } from './queue-children.ts'
import { claimsIn, claimsOf, lagOf, mostAtOnce, startsOf } from './queue-claims.ts'
import type { QueuePlace, Queues } from './queue-place.ts'

export interface Massacre {
  readonly kills: number
  readonly workers: number
  readonly runs: number
}

/** One kill in so many is of the producer. */
const PRODUCER_EVERY = 8

const WIDE = 4
const KEYS = Array.from({ length: 12 }, (_, n) => `keyed/k${n}`)
const METER = { limit: 5, period: 150 }
const queues: Queues = {
  wide: { globalConcurrency: WIDE },
  keyed: { partitioned: true, globalConcurrency: 1 },
  metered: { rateLimiter: METER },
}
/** What the producer chooses from: as many runs of the one with a limit, as of all keys together, fewer of the slow one. */
const LANES = [...KEYS, ...KEYS.map(() => 'wide'), 'metered', 'metered', 'metered']

/** Each process that dies has a successor, which has loaded while it lived. */
class Cast {
  readonly #here: QueuePlace
  readonly #workers: { now: Child; next: Child }[]
  #producer: Child
  #producers = 0
  /** How often the producer that lives has been asked for more. */
  #asked = 0

  constructor(here: QueuePlace, workers: number) {
    this.#here = here
    this.#workers = Array.from({ length: workers }, () => ({ now: here.load({ queues }), next: here.load({ queues }) }))
    this.#producer = this.#nextProducer()
    for (const { now } of this.#workers) now.tell('launch')
  }

  more(count: number): void {
    this.#asked += 1
    this.#producer.tell(`more ${count}`)
  }

  /** The producer that is left starts as many as are missing then. */
  async rest(missing: () => number): Promise<void> {
    await this.#producer.saysTimes(this.#asked, 'enough')
    this.more(Math.max(0, missing()))
    await this.#producer.saysTimes(this.#asked, 'enough')
  }

  async killWorker(): Promise<void> {
    const role = this.#workers[Math.floor(Math.random() * this.#workers.length)]
    if (role === undefined) return
    await role.next.says('loaded')
    // One in eight is killed at any time, also while it opens the store, registers, takes over; the others near a beginning.
    const begun = role.now.lines.filter((line) => line.startsWith('begun')).length
    if (Math.random() < 7 / 8) await Promise.race([role.now.saysTimes(begun + 1, 'begun'), setTimeout(500)])
    await setTimeout(Math.random() * 15)
    await this.#here.kill(role.now)
    role.now = role.next
    role.now.tell('launch')
    role.next = this.#here.load({ queues })
  }

  async killProducer(): Promise<void> {
    await this.#producer.says('loaded')
    await setTimeout(Math.random() * 20)
    await this.#here.kill(this.#producer)
    this.#producer = this.#nextProducer()
    this.#asked = 0
  }

  async end(): Promise<void> {
    for (const { now, next } of this.#workers) {
      next.signal('SIGKILL')
      now.tell('shutdown 10000')
    }
    for (const { now } of this.#workers) expect(await now.ended).toEqual({ code: 0, signal: null })
  }

  #nextProducer(): Child {
    return startProgram('producer', this.#here.store, this.#here.log, String(this.#producers++), LANES.join(' '))
  }
}

function acceptedIn({ journal }: QueuePlace): readonly string[] {
  return journal.of('accepted').map(({ key }) => key)
}

/** Each run is done, and no limit is ever exceeded (P1-P6). */
export async function expectSurvival(here: QueuePlace, { kills, workers, runs }: Massacre): Promise<void> {
  const cast = new Cast(here, workers)
  for (let kill = 1; kill <= kills; kill += 1) {
    cast.more(Math.ceil(runs / kills))
    await (kill % PRODUCER_EVERY === 0 ? cast.killProducer() : cast.killWorker())
  }
  await cast.rest(() => runs - acceptedIn(here).length)
  await here.drained(Object.keys(queues))
  await cast.end()

  const notes = here.journal.read()
  const account = accountOf(notes)
  expect(account.faults).toEqual([])
  expect([...account.ended]).toEqual(expect.arrayContaining([...acceptedIn(here)]))
  const claims = await claimsOf(here.client, Object.keys(queues))
  for (const lane of ['wide', ...KEYS]) {
    const limit = lane === 'wide' ? WIDE : 1
    // Reached, and not exceeded.
    expect([lane, account.peaks.get(lane)]).toEqual([lane, limit])
    expect([lane, mostAtOnce(claimsIn(lane, claims))]).toEqual([lane, limit])
  }
  const metered = claimsIn('metered', claims)
  expect(tightestWindow(startsOf(metered), METER.limit)).toBeGreaterThanOrEqual(METER.period)
  const begun = beginnings(notes, 'metered')
  expect(tightestWindow(begun, METER.limit)).toBeGreaterThan(METER.period - lagOf(notes, metered))

  const again = [...account.begins.values()].filter((pids) => pids.length > 1).length
  console.log(
    `${kills} kills, ${account.hits} of them of workers with runs in hand; ${account.ended.size} runs ended, ` +
      `${again} begun again, ${account.repeatedEffects} effects had again`,
  )
  expect(account.hits).toBeGreaterThan(kills / 4)
  expect(again).toBeGreaterThan(kills / 4)
  expect(account.ended.size).toBeGreaterThanOrEqual(runs)
}
