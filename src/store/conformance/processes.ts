/** Processes: who claims runs, kept until nothing of theirs is left. */
import assert from 'node:assert/strict'
import type { ProcessRecord } from '../records.ts'
import { LEASE_MS, newClaim, newProcess, newRun, SUCCEED } from './makers.ts'
import type { Test, World } from './world.ts'

const LINUX = newProcess('worker-1', {
  host: 'host-1',
  pid: 4_194_304,
  pidStart: '123456789012',
  bootId: '2f1b8c3e-0000-4000-8000-000000000000',
  pidNamespace: 'pid:[4026531836]',
  definitions: ['charge', 'refund'],
  queues: ['media'],
  version: 'v1',
})
const ELSEWHERE = newProcess('worker-2', { host: 'host-2', pid: 1 })

export function processes(test: Test): void {
  test('a process is listed as it registered, with the instant', async (world) => {
    assert.deepEqual(await world.store.processes(), [])
    await world.store.registerProcess(LINUX)
    const first = world.clock.now()
    world.clock.pass(1_000)
    await world.store.registerProcess(ELSEWHERE)
    assert.deepEqual(byOwner(await world.store.processes()), [
      { ...LINUX, registeredAt: first },
      { ...ELSEWHERE, registeredAt: first + 1_000 },
    ])
  })

  test('registering again, as a resend does, makes no second one', async (world) => {
    await world.store.registerProcess(LINUX)
    await world.store.registerProcess(LINUX)
    assert.deepEqual(await owners(world), ['worker-1'])
  })

  test('those that hold no claim are removed; no other is touched', async (world) => {
    await world.store.registerProcess(LINUX)
    await world.store.registerProcess(ELSEWHERE)
    await world.store.removeProcesses(['worker-2', 'unheard of'])
    assert.deepEqual(await owners(world), ['worker-1'])
    await world.store.removeProcesses([])
    assert.deepEqual(await owners(world), ['worker-1'])
  })

  test('one that holds a claim stays until it is settled', async (world) => {
    await world.store.registerProcess(LINUX)
    await world.start('a', 't1')
    await world.store.removeProcesses(['worker-1'])
    assert.deepEqual(await owners(world), ['worker-1'])
    await world.settle('a', 't1', SUCCEED)
    await world.store.removeProcesses(['worker-1'])
    assert.deepEqual(await owners(world), [])
  })

  test('one that holds a claim stays until it is reclaimed, also when its lease has ended', async (world) => {
    await world.store.registerProcess(LINUX)
    await world.store.registerProcess(ELSEWHERE)
    await world.enqueue(newRun('a', { claim: newClaim('t1', { owner: 'worker-2' }) }))
    world.clock.pass(LEASE_MS * 2)
    await world.store.removeProcesses(['worker-1', 'worker-2'])
    assert.deepEqual(await owners(world), ['worker-2'])
    await world.reclaim(['worker-2'])
    await world.store.removeProcesses(['worker-2'])
    assert.deepEqual(await owners(world), [])
  })
}

async function owners(world: World): Promise<readonly string[]> {
  return byOwner(await world.store.processes()).map(({ owner }) => owner)
}

function byOwner(records: readonly ProcessRecord[]): readonly ProcessRecord[] {
  return records.toSorted((a, b) => (a.owner < b.owner ? -1 : 1))
}
