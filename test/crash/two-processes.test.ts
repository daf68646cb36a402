/** Two engine processes work on one file, and one of them is killed in the middle. */
import { expect, it } from 'vitest'
import { Engine } from '../../src/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { ended, notebook } from '../api/engine/support.ts'
import type { Note } from './journal.ts'
import { itemWorkflow } from './pair.ts'
import { place } from './place.ts'
import { start } from './processes.ts'

const STARTED_BY_EACH = 500
const ENQUEUED = 200

/** The processes that worked on a run, in turn: one that comes back after another has begun is listed again. */
function turnsByRun(notes: readonly Note[]): ReadonlyMap<string, readonly number[]> {
  const turns = new Map<string, number[]>()
  for (const { what, key, pid } of notes) {
    if (what === 'accepted') continue
    const [runId = ''] = key.split(':')
    const pids = turns.get(runId) ?? []
    turns.set(runId, pids)
    if (pids.at(-1) !== pid) pids.push(pid)
  }
  return turns
}

it('1,000 direct starts by two processes, one of them killed: each run ends, none is worked on by two (C-25)', async () => {
  const { store, log, journal } = place()
  const item = itemWorkflow(journal)
  const watcher = ended(new Engine({ store: sqlite(store), definitions: [item], logger: notebook() }))
  const enqueued = await watcher.startMany(
    item,
    Array.from({ length: ENQUEUED }, (_, n) => ({ input: n, options: { id: `enqueued-${n}` } })),
  )
  const victim = start('pair.ts', store, log, 'victim', String(STARTED_BY_EACH))
  const survivor = start('pair.ts', store, log, 'survivor', String(STARTED_BY_EACH))
  await Promise.all([victim.says('loaded'), survivor.says('loaded')])
  victim.tell('go')
  survivor.tell('go')
  await victim.saysTimes(STARTED_BY_EACH / 2, 'accepted')
  await victim.kill()

  const accepted = journal.of('accepted').map(({ key }) => key)
  await survivor.says('done')
  const ids = new Set([...accepted, ...journal.of('accepted').map(({ key }) => key), ...enqueued.map(({ id }) => id)])
  for (const id of ids) expect(await watcher.handle(id).result()).toBe(Number(id.split('-')[1]))
  survivor.tell('leave')
  expect(await survivor.ended).toEqual({ code: 0, signal: null })

  const notes = journal.read()
  const turns = turnsByRun(notes)
  const takenOver = [...turns].filter(([, pids]) => pids.length > 1)
  expect(takenOver.filter(([, pids]) => pids.join() !== [victim.pid, survivor.pid].join())).toEqual([])
  const repeated = new Map<string, number>()
  for (const { what, key } of notes) if (what === 'effect') repeated.set(key, (repeated.get(key) ?? 0) + 1)
  for (const [key, effects] of repeated) {
    const wasTakenOver = takenOver.some(([id]) => key.startsWith(`${id}:`))
    expect(effects, key).toBeLessThanOrEqual(wasTakenOver ? 2 : 1)
  }
  for (const [id] of takenOver) {
    const outcomes = (await watcher.runs.attempts(id)).map(({ outcome }) => outcome)
    expect(outcomes).toEqual(['crashed', 'succeeded'])
  }
  console.log(`${ids.size} runs ended; ${takenOver.length} of them begun by the process that was killed`)
  expect(takenOver.length).toBeGreaterThan(0)
  expect(ids.size).toBeGreaterThan(STARTED_BY_EACH + STARTED_BY_EACH / 2 + ENQUEUED - 1)
})
