/** Everything that can be seen of a store in the model test, in forms that don't depend on what the contract leaves open. */
import type { Store } from '../contract.ts'
import { IDS, OWNERS, POSITIONS, QUEUES } from './model-operations.ts'
import { comparableRow } from './model-script.ts'

export async function visible(store: Store): Promise<unknown> {
  const requests = []
  for (const owner of OWNERS) requests.push(...(await store.cancelRequests(owner)))
  return {
    runs: await runsOf(store),
    inputs: await store.inputs(IDS),
    order: (await store.list({ limit: 100 })).map(({ id }) => id),
    ended: (await store.list({ limit: 2, status: ['SUCCESS', 'DEAD'], definition: 'x' })).map(({ id }) => id),
    requests: requests.map(({ runId, token }) => `${runId} ${token}`).toSorted(),
    expiry: await store.nextExpiry(),
    processes: (await store.processes()).toSorted((a, b) => (a.owner < b.owner ? -1 : 1)),
    queues: await store.queues(),
    lines: await Promise.all(QUEUES.map((name) => lineOf(store, name))),
    signals: await signalsOf(store),
    values: await store.scan('', null, 100),
  }
}

async function runsOf(store: Store): Promise<readonly unknown[]> {
  const histories = await store.histories(IDS)
  const endings = await store.endings(IDS)
  const now = store.clock.now()
  const runs = []
  for (const id of IDS) {
    const situation = await store.situation(id)
    if (situation === undefined) {
      runs.push(endings.get(id))
      continue
    }
    // How many are ahead depends on when those that are due are promoted.
    const { run, ahead: _, waits, ...rest } = situation
    runs.push({
      run: comparableRow(run, now),
      ending: endings.get(id),
      history: histories.get(id) ?? [],
      attempts: await store.attempts(id),
      waits: waits.map((wait) => JSON.stringify(Object.entries(wait).toSorted())).toSorted(),
      ...rest,
    })
  }
  return runs
}

async function lineOf(store: Store, name: string): Promise<unknown> {
  const { enqueued, delayed, ...rest } = await store.queueStats(name)
  const listed = await store.list({ queue: name, limit: 100 })
  return { ...rest, toStart: enqueued + delayed, listed: listed.map(({ id }) => id) }
}

async function signalsOf(store: Store): Promise<readonly unknown[]> {
  const waits = IDS.flatMap((runId) => POSITIONS.map((position) => ({ runId, position })))
  return [...(await store.signals(waits))].toSorted(([a], [b]) => a - b)
}
