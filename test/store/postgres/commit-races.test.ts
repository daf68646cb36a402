/**
 * Commands of every sort race through several connections, with claims in between, over a few runs, keys and lanes. What
 * each was answered depends on the order; what is stored must fit together whatever it was.
 */
import { expect, it } from 'vitest'
import { StoreUnavailableError } from '../../../src/core/errors.ts'
import { FAIL, newClaim, newRun, outcome, RELEASE, SUCCEED } from '../../../src/store/conformance/makers.ts'
import { claimRequest, from, newQueue } from '../../../src/store/conformance/sources.ts'
import type { Command, Effect, KvChange, NewRun, Settlement, Store } from '../../../src/store/contract.ts'
import { postgres } from '../../../src/store/postgres/index.ts'
import { emptySchema } from './databases.ts'
import { run } from './server.ts'

const IDS = Array.from({ length: 12 }, (_, n) => `run ${n}`)
const KEYS = ['a', 'b', 'c']
const CONNECTIONS = 4
const BATCHES = 40
const ROUNDS = 3

function pick<T>(...from: readonly T[]): T {
  const picked = from[Math.floor(Math.random() * from.length)]
  if (picked === undefined) throw new Error('nothing to pick from')
  return picked
}

let count = 0
function name(what: string): string {
  count += 1
  return `${what} ${count}`
}

const put = (): Extract<Effect, { type: 'put' }> => {
  const value = name('value')
  return { type: 'put', key: pick(...KEYS), value, hash: `#${value}` }
}
const queued = (): Partial<NewRun> => {
  const dedup = { id: pick('d', 'e'), policy: pick('reject', 'returnExisting') } as const
  return { queue: 'laned', partitionKey: pick('x', 'y'), dedup }
}
const direct = (): Partial<NewRun> => ({ claim: newClaim(name('token')) })

function effects(parentId: string): readonly Effect[] {
  if (Math.random() > 0.3) return []
  return [
    pick<() => Effect>(
      put,
      () => ({ type: 'delete', key: pick(...KEYS) }),
      () => ({ type: 'signal', key: pick(...KEYS), payload: '1' }),
      () => ({ type: 'start', run: newRun(pick(...IDS), { ...queued(), parentId }) }),
    )(),
  ]
}

function settlement(id: string): Settlement {
  const others = IDS.filter((other) => other !== id)
  const children = [[], [pick(...others)], [pick(...others), pick(...others)]] as const
  return pick<Settlement>(
    SUCCEED,
    FAIL,
    RELEASE,
    { type: 'cancel', failure: { kind: 'cancelled', error: null } },
    ...children.map(
      (ids): Settlement => ({
        type: 'suspend',
        wakeAt: null,
        children: ids.map((runId, position) => ({ position, runId })),
      }),
    ),
  )
}

async function command(store: Store): Promise<Command> {
  const id = pick(...IDS)
  const [row] = await store.runs([id])
  const next = (await store.histories([id])).get(id)?.length ?? 0
  const fence = { runId: id, token: row?.token ?? 'none' }
  const commandId = name('command')
  return pick<() => Command>(
    () => ({ type: 'enqueue', commandId, runs: [newRun(id, direct())] }),
    () => ({ type: 'enqueue', commandId, runs: [newRun(id, queued()), newRun(pick(...IDS), { kv: [put()] })] }),
    () => ({ type: 'checkpoint', ...fence, entries: [outcome(next, { effects: effects(id) })] }),
    () => ({ type: 'settle', ...fence, entries: [outcome(next, { effects: effects(id) })], settlement: SUCCEED }),
    () => ({ type: 'settle', ...fence, entries: [], settlement: settlement(id) }),
    () => ({ type: 'settle', ...fence, entries: [], settlement: settlement(id) }),
    () => ({
      type: 'perform',
      ...fence,
      entry: outcome(next, { value: null }),
      action: { type: 'start', run: newRun(pick(...IDS), { parentId: id, ...pick({}, direct()) }) },
    }),
    () => ({ type: 'wait', ...fence, position: pick(0, 1), key: pick(...KEYS), entries: [] }),
    () => ({ type: 'wait', ...fence, position: pick(0, 1), key: pick(...KEYS), entries: [] }),
    () => ({ type: 'expire', ...fence, position: pick(0, 1) }),
    () => ({ type: 'signal', commandId, key: pick(...KEYS), payload: '2' }),
    () => ({ type: 'cancel', commandId, runId: id }),
    () => ({ type: 'cancel', commandId, runId: id }),
    () => ({ type: 'requeue', commandId, runId: id }),
    () => ({ type: 'kv', commandId, change: pick<KvChange>(put(), { ...put(), type: 'putIf', expected: null }) }),
    () => ({ type: 'kv', commandId, change: { type: 'delete', key: pick(...KEYS) } }),
  )()
}

/** Another connection has recorded the entry first. */
const EXPECTED = /recorded before, as another one|leave a gap/

async function work(store: Store, worker: string): Promise<void> {
  for (let n = 0; n < BATCHES; n += 1) {
    try {
      if (n % 4 === 3) {
        const tokens = [name(worker), name(worker)]
        const internal = { ...from('laned'), queue: null }
        await store.claim(claimRequest(tokens, { owner: worker, sources: [internal, from('laned')] }))
      } else await store.commit(await Promise.all(Array.from({ length: pick(1, 2, 3, 4, 5) }, () => command(store))))
    } catch (error) {
      if (StoreUnavailableError.is(error)) continue
      if (!(error instanceof Error && EXPECTED.test(error.message))) throw error
    }
  }
}

/** What must not be there. */
const WRONG: Readonly<Record<string, string>> = {
  'a suspended run that is not due, though a run that it waits for has ended': `
    select r.id from perdure.runs r join perdure.waits w on w.run = r.seq and w.type = 'child'
    left join perdure.runs c on c.id = w.key
    where r.status = 'WAITING' and r.due_at is null and (c.seq is null or c.ended_at is not null)`,
  'a suspended run that is not due, though its signal has come': `
    select r.id from perdure.runs r join perdure.waits w on w.run = r.seq and w.state = 'signalled'
    where r.status = 'WAITING' and r.due_at is null`,
  'a signal that is kept, though somebody waits for it': `
    select s.key from perdure.signals s join perdure.waits w on w.key = s.key and w.type = 'signal' and w.state = 'open'`,
  'two runs that wait on one key': `
    select key from perdure.waits where type = 'signal' and state = 'open' group by key having count(distinct run) > 1`,
  'waits of a run that has ended': `
    select r.id from perdure.waits w join perdure.runs r on r.seq = w.run where r.ended_at is not null`,
  'a wait for a run, of one that is not suspended': `
    select r.id from perdure.waits w join perdure.runs r on r.seq = w.run where r.status <> 'WAITING' and w.type = 'child'`,
  'an ending without a run that has ended, or the other way round': `
    select r.id from perdure.runs r full join perdure.endings e on e.run = r.seq
    where (r.ended_at is null) <> (e.run is null)`,
  'an input without its run, or the other way round': `
    select r.id from perdure.runs r full join perdure.inputs i on i.run = r.seq where r.seq is null or i.run is null`,
  'a history with a gap': 'select run from perdure.checkpoints group by run having count(*) <> max(seq) + 1',
  'an enqueued run whose lane is not listed': `
    select r.id from perdure.runs r where r.status = 'ENQUEUED' and r.queue = 'laned'
    and not exists (select 1 from perdure.lanes l where l.queue = r.queue and l.lane = r.lane)`,
  'a lane that is closed, though it has room': `
    select l.lane from perdure.lanes l where l.ready_at is null and (
      select count(*) from perdure.runs r
      where r.queue = l.queue and r.lane = l.lane and r.status in ('PENDING', 'WAITING')) < 2`,
  'a lane with more than its limit': `
    select lane from perdure.runs where queue = 'laned' and status in ('PENDING', 'WAITING')
    group by lane having count(*) > 2`,
}

it('rows fit together, whatever races', { timeout: 120_000 }, async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { url, schema } = await emptySchema()
    const stores = Array.from({ length: CONNECTIONS }, () => postgres(url, { schema, notify: false }))
    for (const store of stores) await store.open()
    await stores[0]?.registerQueues([newQueue('laned', { partitioned: true, globalConcurrency: 2 })])
    await Promise.all(stores.map((store, n) => work(store, `worker ${n}`)))
    for (const [what, sql] of Object.entries(WRONG)) {
      const { rows } = await run(sql.replaceAll('perdure.', `"${schema}".`))
      expect(rows, what).toEqual([])
    }
    for (const store of stores) await store.close()
  }
})
