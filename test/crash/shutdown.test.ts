/** Processes that are told to leave: what they still hold is handed back, and nothing keeps them alive. */
import { expect, it } from 'vitest'
import { leaves, outcomes, stage } from './director.ts'
import type { Child } from './processes.ts'

/** After its shutdown a process ends by itself, within this. */
const GONE_WITHIN_MS = 1_000

async function leavesNothingBehind(child: Child): Promise<void> {
  await leaves(child)
  expect(await child.says('left over: ')).toBe('left over: ')
  const [, ms] = (await child.says('gone')).split(' ')
  expect(Number(ms)).toBeLessThan(GONE_WITHIN_MS)
}

it('SIGTERM with a shutdown in its handler: long runs are handed back, no attempt is spent (D-29, F-06)', async () => {
  const here = stage()
  const { engine, journal } = here
  const worker = await here.worker()
  worker.tell('start stubborn heeding false')
  worker.tell('start stubborn deaf true')
  worker.tell('start shift ending "in the step"')
  await worker.saysTimes(3, 'holding')
  worker.signal('SIGTERM')
  // What returns while the engine drains is settled.
  worker.tell('release ending')
  await leavesNothingBehind(worker)

  expect(await engine.handle(here.definitions.shift, 'ending').fetchResult()).toMatchObject({ ok: true })
  for (const id of ['heeding', 'deaf']) {
    expect(await engine.runs.get(id)).toMatchObject({ status: 'ENQUEUED', attempt: 0, crashes: 0 })
    expect(await outcomes(here, id)).toEqual(['interrupted'])
  }
  await engine.launch()
  for (const id of ['heeding', 'deaf']) {
    await engine.handle(id).result()
    expect(await engine.runs.get(id)).toMatchObject({ status: 'SUCCESS', attempt: 1, crashes: 0 })
    expect(journal.of('effect', `${id}:0`).map(({ pid }) => pid)).toEqual([worker.pid])
    expect(journal.of('effect', `${id}:1`).map(({ pid }) => pid)).toEqual([worker.pid, process.pid])
  }
})

it('a process that launches, runs and shuts down leaves nothing alive (F-01)', async () => {
  const here = stage()
  const worker = await here.worker()
  worker.tell('start failing f')
  worker.tell('start nap n')
  worker.tell('start steady s 3')
  await worker.says('ended f')
  await worker.says('ended s')
  worker.tell('shutdown')
  await leavesNothingBehind(worker)
  expect(await here.engine.handle('f').status()).toBe('ERROR')
})

it('a process that launches and shuts down at once, too (F-01, F-04)', async () => {
  const here = stage()
  const worker = await here.worker()
  worker.tell('shutdown')
  await leavesNothingBehind(worker)
})
