/** An empty database that many processes open at the same moment: all of them start, and one makes the tables. */
import { expect, it } from 'vitest'
import { durableServer, freshSpec } from './postgres-server.ts'
import { queuePlace } from './queue-place.ts'
import { specOf } from './store-spec.ts'

const server = await durableServer()

const PROCESSES = 10
const queues = { media: { globalConcurrency: 3 } }

it(`${PROCESSES} processes open an empty database at once: one makes the tables, and each works (E-09)`, async () => {
  const spec = freshSpec(server)
  const here = queuePlace(specOf(spec))
  const workers = Array.from({ length: PROCESSES }, () => here.load({ queues }))
  await Promise.all(workers.map((worker) => worker.says('loaded')))
  for (const worker of workers) worker.tell('launch')
  await Promise.all(workers.map((worker) => worker.says('launched')))
  const meta = await server.sql(`select value from "${spec.schema}".meta where name = 'schema_version'`)
  expect(meta).toHaveLength(1)
  const processes = await server.sql(`select pid from "${spec.schema}".processes`)
  expect(new Set(processes.map(({ pid }) => Number(pid)))).toEqual(new Set(workers.map(({ pid }) => pid)))
  for (const worker of workers) worker.tell('shutdown 10000')
  for (const worker of workers) expect(await worker.ended).toEqual({ code: 0, signal: null })
})
