/** A file in trouble: empty and opened by many, full, or held by another program. None of it is an outcome of a run. */
import { setTimeout } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Engine, workflow } from '../../src/index.ts'
import { Database } from '../../src/store/sqlite/database.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { door, ended, notebook, Tally, until } from '../api/engine/support.ts'
import { leaves, outcomes, stage } from './director.ts'
import { place } from './place.ts'
import { start } from './processes.ts'

const PROCESSES = 10

it(`${PROCESSES} processes open an empty file at once, and each runs a workflow (E-09)`, async () => {
  const here = stage()
  const workers = Array.from({ length: PROCESSES }, () => start('worker.ts', here.store, here.log))
  await Promise.all(workers.map((worker) => worker.says('loaded')))
  for (const worker of workers) worker.tell('launch')
  await Promise.all(
    workers.map(async (worker, n) => {
      await worker.says('launched')
      worker.tell(`start shift r-${n} "nowhere"`)
      await worker.says(`ended r-${n} ok`)
      worker.tell('shutdown')
      await leaves(worker)
    }),
  )
  for (const [n, { pid }] of workers.entries()) {
    expect(await here.engine.handle(`r-${n}`).result()).toEqual([pid, pid])
    expect(await outcomes(here, `r-${n}`)).toEqual(['succeeded'])
  }
  expect((await here.engine.runs.list()).runs).toHaveLength(PROCESSES)
})

it('a full disk is no outcome: runs wait for room and go on, one line in the log tells (E-18)', async () => {
  const { store: path } = place()
  const tally = new Tally()
  const filling = door()
  const STEPS = 5
  const hoard = workflow('hoard', async (ctx) => {
    for (let step = 0; step < STEPS; step += 1) {
      await ctx.step('hoard', async (): Promise<string> => {
        tally.add(`effect ${step}`)
        if (step === 2) await filling.opened
        return String(step).repeat(200_000)
      })
    }
    return 'done'
  })
  const opening = vi.spyOn(Database, 'open')
  onTestFinished(() => opening.mockRestore())
  const notes = notebook()
  const store = sqlite(path)
  const commit = vi.spyOn(store, 'commit')
  const engine = ended(new Engine({ store, definitions: [hoard], logger: notes }))
  await engine.launch()
  const run = await engine.start(hoard)
  await until(() => tally.of('effect 2') === 1)
  const database = await opening.mock.results[0]?.value
  const pages = Number(database?.prepare('pragma page_count').get()?.[0])
  database?.prepare(`pragma max_page_count = ${pages}`).get()

  const fullAt = performance.now()
  const before = commit.mock.calls.length
  filling.open()
  const another = engine.start(hoard, undefined, { id: 'another' })
  await until(() => notes.messages('error').length > 0, 'the line in the log')
  await until(() => commit.mock.calls.length - before > 10, 'ten attempts', 60_000)
  const attempts = commit.mock.calls.length - before
  // From 10 ms to 1 s, doubled each time and jittered: the eleventh can't come before 1.9 s.
  expect(attempts).toBeLessThan(9 + (performance.now() - fullAt) / 250)
  expect(await run.status()).toBe('PENDING')
  expect(notes.lines.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { doing: 'commit' } }])

  database?.prepare('pragma max_page_count = 1073741823').get()
  expect(await run.result()).toBe('done')
  expect(await (await another).result()).toBe('done')
  for (let step = 0; step < STEPS; step += 1) expect(tally.of(`effect ${step}`)).toBe(2)
  expect(notes.lines.filter(({ level }) => level === 'warn' || level === 'error')).toHaveLength(2)
  expect((await engine.runs.attempts(run.id)).map(({ outcome }) => outcome)).toEqual(['succeeded'])
})

it('a file that another program holds for seconds blocks no event loop, and runs go on after', async () => {
  const here = stage()
  const { engine, notes, journal } = here
  await engine.launch()
  const run = await engine.start(here.definitions.steady, 100, { id: 's' })
  await until(() => journal.of('effect').length > 3, 'the run to be on its way')
  const holder = start('holder.ts', here.store)
  await holder.says('held')
  const heldAt = performance.now()
  let longestGapMs = 0
  for (let last = heldAt; last - heldAt < 3_000; ) {
    await setTimeout(5)
    const now = performance.now()
    longestGapMs = Math.max(longestGapMs, now - last)
    last = now
  }
  const meanwhile = journal.of('effect').length
  expect(longestGapMs).toBeLessThan(1_000)
  expect(await run.status()).toBe('PENDING')
  expect(notes.messages('error')).toHaveLength(1)

  holder.tell('let go')
  await leaves(holder)
  expect(await run.result()).toBe(100)
  expect(meanwhile).toBeLessThan(100)
  expect(journal.of('effect')).toHaveLength(100)
  expect(await outcomes(here, 's')).toEqual(['succeeded'])
})
