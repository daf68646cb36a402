/** Runs of dead processes: who takes them over, how fast, and what becomes of one that kills whoever runs it. */
import { expect, it } from 'vitest'
import { RunFailedError } from '../../src/index.ts'
import { refusal, until } from '../api/engine/support.ts'
import { outcomes, type Stage, stage } from './director.ts'
import type { Child } from './processes.ts'

const HELD = ['held-1', 'held-2', 'held-3', 'held-4', 'held-5']
/** How often the reaper looks, and a dispatcher at the latest. */
const REAPER_MS = 5_000
const POLL_MS = 1_000
/** For a machine that has other work, too. */
const SLACK_MS = 1_500

/** Kills a worker that has several runs in hand, each in a step. */
async function killHolding(worker: Child): Promise<void> {
  for (const id of HELD) worker.tell(`start shift ${id} "in the step"`)
  await worker.saysTimes(HELD.length, 'holding')
  await worker.kill()
}

/** The moments when the process entered the bodies of these runs, by its own measure. */
function entries({ journal }: Stage, pid: number): readonly number[] {
  return journal
    .of('body')
    .filter((note) => note.pid === pid)
    .map(({ value }) => Number(value))
}

it('a restart resumes the runs of the dead process within a second of its launch (D-07, W19)', async () => {
  const here = stage()
  await killHolding(await here.worker())
  const successor = await here.worker()
  await successor.saysTimes(HELD.length, 'holding')
  const moments = entries(here, successor.pid)
  expect(moments).toHaveLength(HELD.length)
  expect(Math.max(...moments)).toBeLessThan(1_000)
  for (const id of HELD) successor.tell(`release ${id}`)
  for (const id of HELD) {
    expect(await here.engine.handle(here.definitions.shift, id).result()).toHaveLength(2)
    expect(await outcomes(here, id)).toEqual(['crashed', 'succeeded'])
    expect(here.journal.of('effect', `${id}:0`)).toHaveLength(1)
  }
})

it('another living process of the host takes over by itself, long before the leases end (D-07, D-16, W19)', async () => {
  const here = stage()
  const worker = await here.worker()
  await here.engine.launch()
  await killHolding(worker)
  const diedAt = performance.now()
  for (const id of HELD) {
    expect(await here.engine.handle(here.definitions.shift, id).result()).toEqual([worker.pid, process.pid])
    expect(here.journal.of('effect', `${id}:0`)).toHaveLength(1)
  }
  const moments = entries(here, process.pid)
  expect(moments).toHaveLength(HELD.length)
  expect(Math.max(...moments) - diedAt).toBeLessThan(REAPER_MS + POLL_MS + SLACK_MS)
})

it('a run that kills its process is dead-lettered after maxRecoveries, and others move on (D-28, W18)', async () => {
  const here = stage()
  const { engine, journal } = here
  const first = await here.worker()
  first.tell('start steady s 25')
  await first.says('started s')
  first.tell('start poison p')
  expect(await first.ended).toEqual({ code: null, signal: 'SIGKILL' })
  for (let crashes = 2; crashes <= 3; crashes += 1) {
    expect(await (await here.worker()).ended).toEqual({ code: null, signal: 'SIGKILL' })
  }
  await here.worker()
  const failure = await refusal(engine.handle('p').result())
  expect(failure).toBeInstanceOf(RunFailedError)
  expect(failure).toMatchObject({ kind: 'crashed' })
  expect(await engine.runs.get('p')).toMatchObject({ status: 'DEAD', crashes: 3, failureKind: 'crashed' })
  expect(await outcomes(here, 'p')).toEqual(['crashed', 'crashed', 'dead'])
  expect(journal.of('body', 'p')).toHaveLength(3)

  expect(await engine.handle('s').result()).toBe(25)
  const effects = journal.of('effect').filter(({ key }) => key.startsWith('s:'))
  expect(new Set(effects.map(({ key }) => key)).size).toBe(25)
  // One step at a time, so each of the three kills can have interrupted one.
  expect(effects.length).toBeLessThanOrEqual(25 + 3)
})

it('a run that kills its process can be cancelled, before and after it is dead (D-28, W18)', async () => {
  const here = stage()
  const { engine, journal } = here
  const first = await here.worker()
  first.tell('start poison p')
  await first.ended
  // Its claim is that of a dead process: asked to end, it ends when the claim is taken over, and is not run again.
  expect(await engine.runs.get('p')).toMatchObject({ status: 'PENDING' })
  expect(await engine.cancel('p')).toBe(true)
  const second = await here.worker()
  await until(async () => (await engine.handle('p').status()) === 'CANCELLED', 'the cancellation')
  expect(journal.of('body', 'p')).toHaveLength(1)
  expect(await outcomes(here, 'p')).toEqual(['cancelled'])
  expect(second.alive).toBe(true)
  await second.kill()

  expect(await engine.requeue('p')).toBe(true)
  expect(await engine.runs.get('p')).toMatchObject({ status: 'ENQUEUED', crashes: 0, cancelRequested: false })
  expect(await engine.cancel('p')).toBe(true)
  expect(await engine.handle('p').status()).toBe('CANCELLED')
})

it('a sleep that ended while no worker lived wakes at the next start (B-13)', async () => {
  const here = stage()
  const { engine, journal } = here
  const first = await here.worker()
  first.tell('start nap n')
  await until(async () => (await engine.runs.get('n'))?.status === 'WAITING', 'the suspension')
  await first.kill()
  const wakeAt = (await engine.runs.get('n'))?.wakeAt?.getTime() ?? Number.POSITIVE_INFINITY
  await until(() => Date.now() > wakeAt, 'the end of the sleep')
  expect(await engine.handle('n').status()).toBe('WAITING')

  const second = await here.worker()
  await engine.handle('n').result()
  expect(entries(here, second.pid).every((ms) => ms < 1_000)).toBe(true)
  expect(journal.of('effect').map(({ key, pid }) => [key, pid])).toEqual([
    ['n:0', first.pid],
    ['n:2', second.pid],
  ])
  // Nothing crashed: a sleeping run is in nobody's hands.
  expect(await outcomes(here, 'n')).toEqual(['succeeded'])
})
