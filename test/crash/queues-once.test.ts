/** Several processes take runs from one queue: each run is taken once. */
import { expect, it } from 'vitest'
import { accountOf } from './queue-account.ts'
import { queuePlace } from './queue-place.ts'

it.each([
  [3, 30, 20, '(Q15)'],
  [4, 1_000, 2, '(C-25)'],
])('%i processes, %i runs of %i ms: each is done once %s', async (processes, runs, ms) => {
  const here = queuePlace()
  const settings = { queues: { items: { workerConcurrency: 5 } } }
  const workers = await Promise.all(Array.from({ length: processes }, () => here.worker(settings)))
  const input = { ms }
  await here.client.startMany(
    'task',
    Array.from({ length: runs }, (_, n) => ({ input, options: { queue: 'items', id: `items.${n}` } })),
  )
  await here.drained(['items'])
  for (const worker of workers) worker.tell('shutdown 10000')
  for (const worker of workers) expect(await worker.ended).toEqual({ code: 0, signal: null })

  const { faults, begins, ended } = accountOf(here.journal.read())
  expect(faults).toEqual([])
  expect(ended.size).toBe(runs)
  expect([...begins.values()].filter((pids) => pids.length !== 1)).toEqual([])
  // Every process had its part.
  expect(new Set([...begins.values()].flat()).size).toBe(processes)
})
