/** Locks that users hold: the rest of a batch does not wait for them. */
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Engine, workflow } from '../../../src/index.ts'
import { outcome } from '../../../src/store/conformance/makers.ts'
import { settled } from '../../../src/store/conformance/settled.ts'
import type { Command, Store } from '../../../src/store/contract.ts'
import { postgres } from '../../../src/store/postgres/index.ts'
import { ended, notebook, until } from '../../api/engine/support.ts'
import { claimed, tokenOf } from './claims.ts'
import { emptySchema, stranger } from './databases.ts'

async function opened() {
  const { url, schema } = await emptySchema()
  const store = postgres(url, { schema })
  await store.open()
  onTestFinished(() => store.close())
  const other = await stranger(url)
  const hold = async (id: string): Promise<void> => {
    await other.query('begin')
    await other.query(`select 1 from "${schema}".runs where id = $1 for update`, [id])
  }
  return { store, other, hold, url, schema }
}

const checkpoint = (runId: string): Command => ({
  ...{ type: 'checkpoint', runId, token: tokenOf(runId), entries: [outcome(0)] },
})

async function start(store: Store, ids: readonly string[]): Promise<void> {
  await store.commit([{ type: 'enqueue', commandId: 'start', runs: ids.map((id) => claimed(id)) }])
}

describe('a row that a user has locked', () => {
  const ids = Array.from({ length: 500 }, (_, n) => `run ${n}`)

  it('holds up its own command: the rest of the batch is committed within 200 ms', async () => {
    const { store, other, hold } = await opened()
    await start(store, ids)
    // Plans are made, connections open.
    await store.commit(ids.slice(0, 5).map((id) => ({ ...checkpoint(id), entries: [] }) as Command))
    await hold('run 123')
    const before = performance.now()
    const answers = await store.commit(ids.map(checkpoint))
    const took = performance.now() - before
    expect(answers.flatMap(({ type }, n) => (type === 'blocked' ? [n] : []))).toEqual([123])
    expect(took).toBeLessThan(200)
    await setTimeout(700)
    await other.query('rollback')
    expect((await settled(answers))[123]).toMatchObject({ type: 'applied' })
    expect((await store.histories(['run 123'])).get('run 123')).toHaveLength(1)
  })

  it('however many there are, all get through in the end', async () => {
    const { store, other, hold } = await opened()
    await start(store, ids.slice(0, 20))
    await other.query('begin')
    for (const id of ids.slice(0, 7)) await hold(id)
    const answers = await store.commit(ids.slice(0, 20).map(checkpoint))
    expect(answers.filter(({ type }) => type === 'blocked')).toHaveLength(7)
    await other.query('rollback')
    for (const answer of await settled(answers)) expect(answer).toMatchObject({ type: 'applied' })
  })

  it('is not waited for when the store is closed', async () => {
    const { store, hold } = await opened()
    await start(store, ['a'])
    await hold('a')
    const [answer] = await store.commit([checkpoint('a')])
    if (answer?.type !== 'blocked') throw new Error('not blocked')
    const refused = expect(answer.outcome).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    await store.close()
    await refused
  })
})

it('a start whose id an open transaction has is blocked alone, and is one start in the end', async () => {
  const { store, other, schema } = await opened()
  await start(store, ['a'])
  await other.query('begin')
  await other.query(`insert into "${schema}".runs select (jsonb_populate_record(r, '{"id":"b","seq":-1,"token":"other"}')).*
    from "${schema}".runs r where id = 'a'`)
  const starts = ['x', 'b', 'y'].map((id): Command => ({ type: 'enqueue', commandId: id, runs: [claimed(id)] }))
  const answers = await store.commit(starts)
  expect(answers.map(({ type }) => type)).toEqual(['accepted', 'blocked', 'accepted'])
  await other.query('rollback')
  expect((await settled(answers))[1]).toMatchObject({ runs: [{ id: 'b', created: true }] })
})

it('an engine goes on beside a run whose row is locked, and that one goes on later', async () => {
  const { url, schema } = await emptySchema()
  const flow = workflow('flow', async (ctx, n: number) => {
    await ctx.sleep(300)
    return ctx.step('step', () => n)
  })
  const logger = notebook()
  const engine = ended(new Engine({ store: postgres(url, { schema }), definitions: [flow], logger }))
  await engine.launch()
  const runs = await Promise.all([1, 2, 3].map((n) => engine.start(flow, n)))
  const [first] = runs
  const other = await stranger(url)
  await other.query('begin')
  await other.query(`select 1 from "${schema}".runs where id = $1 for update`, [first?.id])
  expect(await Promise.all(runs.slice(1).map((run) => run.result()))).toEqual([2, 3])
  await setTimeout(300)
  await other.query('rollback')
  await until(async () => (await first?.status()) === 'SUCCESS')
  expect(logger.messages('warn')).toEqual([])
})
