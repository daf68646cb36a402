/**
 * Runs that wait for a signal or for their children, with a signal from another process, and the death of their own,
 * before and after everything that is written for them. Which points those are, a rehearsal tells.
 */
import { expect, it, onTestFinished } from 'vitest'
import { Client } from '../../src/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { ended } from '../api/engine/support.ts'
import { type Place, place } from './place.ts'
import type { Child } from './processes.ts'
import { startProgram } from './queue-children.ts'
import type { Point } from './queue-halting.ts'
import { CHILDREN, engineOn, KEY, RUN_ID, type Subject, type SuspensionScene } from './queue-suspensions.ts'

const PAYLOAD = 'yes'
const SUSPENDED = 'after the suspension'

interface Case extends Place {
  readonly haltAt: Point
  readonly client: Client
}

/** The run waits in its queue until somebody launches an engine. */
async function caseOf(subject: Subject, haltAt: Point): Promise<Case> {
  const here = place()
  const client = new Client({ store: sqlite(here.store) })
  onTestFinished(() => client.close())
  await client.start(subject, undefined, { queue: 'family', id: RUN_ID })
  return { ...here, haltAt, client }
}

/** The points that a run passes in one process; its signal comes when it has been suspended. */
async function rehearse(subject: Subject): Promise<readonly Point[]> {
  const { client, store, journal } = await caseOf(subject, '')
  const points: Point[] = []
  const engine = ended(
    engineOn(store, journal, {
      passing: async (point) => {
        points.push(point)
        if (point === SUSPENDED && subject === 'waiter') await client.sendSignal(KEY, PAYLOAD)
      },
    }),
  )
  await engine.launch()
  await engine.handle(RUN_ID).result({ timeout: '20s' })
  return points
}

/**
 * One process for all of them; resolves when each has come to its point, or has ended without it, as it may when the
 * processors are busy with others. `whenSuspended`: does something in between.
 */
async function halted(
  cases: readonly Case[],
  whenSuspended?: (each: Case) => Promise<void>,
  serves?: SuspensionScene['serves'],
): Promise<{ readonly worker: Child; readonly strays: readonly Case[] }> {
  const scenes: SuspensionScene[] = cases.map(({ store, log, haltAt }) => {
    return { store, log, haltAt, ...(serves === undefined ? {} : { serves }) }
  })
  const worker = startProgram('suspended', JSON.stringify(scenes))
  const coming = cases.map(async (each, number) => {
    if (whenSuspended !== undefined) {
      await worker.says(`suspended ${number}`)
      await whenSuspended(each)
    }
    return (await worker.says(`stopped ${number} `)).endsWith(each.haltAt)
  })
  const came = await Promise.all(coming)
  const strays = cases.filter((_, number) => !came[number])
  expect(strays.length).toBeLessThan(cases.length / 5)
  return { worker, strays }
}

/** The result of each run by the point of its case; after a kill, engines of this process bring them about. */
async function resultsOf(cases: readonly Case[], killed: boolean): Promise<ReadonlyMap<Point, unknown>> {
  const results = cases.map(async ({ store, journal, client, haltAt }): Promise<[Point, unknown]> => {
    if (killed) await ended(engineOn(store, journal)).launch()
    return [haltAt, await client.handle(RUN_ID).result({ timeout: '20s' })]
  })
  return new Map(await Promise.all(results))
}

function same<T>(cases: readonly Case[], result: T): ReadonlyMap<Point, T> {
  return new Map(cases.map(({ haltAt }) => [haltAt, result]))
}

/** How often each step had its effect: twice at most, if a process was killed, and in a process never twice. */
function expectEffects({ journal }: Case, keys: readonly string[], killed: boolean): void {
  const effects = journal.of('effect')
  expect(new Set(effects.map(({ key }) => key))).toEqual(new Set(keys))
  expect(new Set(effects.map(({ key, pid }) => `${key} in ${pid}`)).size).toBe(effects.length)
  if (!killed) expect(effects).toHaveLength(keys.length)
}

/** A third party learns that the signal is neither kept nor waited for any more. */
async function expectConsumed({ client }: Case): Promise<void> {
  expect(await client.sendSignal(KEY, 'another')).toBe('buffered')
}

const WAITER_EFFECTS = [`${RUN_ID}:0`, `${RUN_ID}:2`]

/** Until the run is suspended, and from there on. */
async function pointsOfWaiter(): Promise<{ readonly before: readonly Point[]; readonly after: readonly Point[] }> {
  const points = await rehearse('waiter')
  const suspendedAt = points.indexOf(SUSPENDED)
  const [before, after] = [points.slice(0, suspendedAt + 1), points.slice(suspendedAt + 1)]
  expect(before).toEqual(expect.arrayContaining(['after the claim', 'before the wait', 'after the wait', SUSPENDED]))
  expect(after).toEqual(expect.arrayContaining(['after the claim #2', 'before the settlement', 'after the settlement']))
  return { before, after }
}

it.each([
  ['signal, then kill', true],
  ['kill, then signal', true],
  ['signal, no kill', false],
] as const)(
  'a signal at every point until the run is suspended is delivered once: %s (W33, D-31)',
  async (order, killed) => {
    const { before } = await pointsOfWaiter()
    const cases = await Promise.all(before.map((point) => caseOf('waiter', point)))
    const { worker } = await halted(cases)
    if (order === 'kill, then signal') await worker.kill()
    for (const { client, haltAt } of cases) {
      const opened = before.indexOf(haltAt) >= before.indexOf('after the wait')
      expect([haltAt, await client.sendSignal(KEY, PAYLOAD)]).toEqual([haltAt, opened ? 'delivered' : 'buffered'])
    }
    if (!killed) worker.tell('go')
    else if (worker.alive) await worker.kill()
    expect(await resultsOf(cases, killed)).toEqual(same(cases, PAYLOAD))
    for (const each of cases) {
      expectEffects(each, WAITER_EFFECTS, killed)
      await expectConsumed(each)
    }
  },
)

it('a process that is killed at any point after the signal came: it is delivered once (W33)', async () => {
  const { after } = await pointsOfWaiter()
  const cases = await Promise.all(after.map((point) => caseOf('waiter', point)))
  const { worker } = await halted(cases, async ({ client }) => {
    expect(await client.sendSignal(KEY, PAYLOAD)).toBe('delivered')
  })
  await worker.kill()
  expect(await resultsOf(cases, true)).toEqual(same(cases, PAYLOAD))
  for (const each of cases) {
    expectEffects(each, WAITER_EFFECTS, true)
    await expectConsumed(each)
  }
})

it('a signal at every point of a wait that times out, with and without a kill: delivered or kept, never both (W33)', async () => {
  const points = await rehearse('timed')
  expect(points).toEqual(expect.arrayContaining([SUSPENDED, 'before the expire', 'after the expire']))
  const variants = [false, true].map(async (killed) => {
    const cases = await Promise.all(points.map((point) => caseOf('timed', point)))
    const { worker, strays } = await halted(cases)
    const answers = await Promise.all(cases.map(({ client }) => client.sendSignal(KEY, PAYLOAD)))
    if (killed) await worker.kill()
    else worker.tell('go')
    expect(new Set(answers)).toEqual(new Set(['buffered', 'delivered']))
    const results = await resultsOf(cases, killed)
    for (const each of cases) {
      const { haltAt, client } = each
      const inTime = !strays.includes(each) && points.indexOf(haltAt) < points.indexOf('after the expire')
      expect([haltAt, results.get(haltAt)]).toEqual([haltAt, inTime ? { ok: true, payload: PAYLOAD } : { ok: false }])
      // One that came too late is the next waiter's: another replaces it.
      expect(await client.sendSignal(KEY, 'another')).toBe(inTime ? 'buffered' : 'replaced')
    }
  })
  await Promise.all(variants)
})

it('a parent that is killed at any point of its fan-out: each child is started once, all results come (W34)', async () => {
  const points = await rehearse('parent')
  expect(points).toEqual(
    expect.arrayContaining([
      'before the start of a child',
      'after the start of a child',
      SUSPENDED,
      'after the claim #2',
    ]),
  )
  const cases = await Promise.all(points.map((point) => caseOf('parent', point)))
  const { worker } = await halted(cases)
  await worker.kill()
  const children = Array.from({ length: CHILDREN }, (_, n) => `${RUN_ID}~${n}`)
  expect(await resultsOf(cases, true)).toEqual(same(cases, [0, 10, 20]))
  for (const each of cases) {
    const { runs } = await each.client.runs.list()
    expect(runs.map(({ id, status }) => `${id} ${status}`).sort()).toEqual(
      [RUN_ID, ...children].map((id) => `${id} SUCCESS`),
    )
    expectEffects(each, [...children.map((id) => `${id}:0`), `${RUN_ID}:${2 * CHILDREN}`], true)
  }
})

it.each([
  ['goes on', false],
  ['is killed', true],
])(
  'children end while their parent is about to be suspended, and its process %s: none is missed (D-31)',
  async (_, killed) => {
    const cases = await Promise.all(['before the suspension', SUSPENDED].map((point) => caseOf('parent', point)))
    const { worker } = await halted(cases, undefined, ['family'])
    for (const { store, journal, client } of cases) {
      await ended(engineOn(store, journal, { serves: ['children'] })).launch()
      for (let n = 0; n < CHILDREN; n += 1) await client.handle(`${RUN_ID}~${n}`).result()
    }
    if (killed) await worker.kill()
    else worker.tell('go')
    expect(await resultsOf(cases, killed)).toEqual(same(cases, [0, 10, 20]))
  },
)
