/** Waits for a signal: open -> signalled | expired, gone with the outcome of their position or the end of their run. */
import assert from 'node:assert/strict'
import type { WaitOutcome } from '../contract.ts'
import type { WaitRecord } from '../records.ts'
import { CLAIM_LOST, FAIL, LEASE_MS, outcome, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

const WAITING: WaitOutcome = { type: 'waiting' }
const EXPIRED: WaitOutcome = { type: 'expired' }

export function wait(test: Test): void {
  opening(test)
  keys(test)
  expiry(test)
  removal(test)
  suspension(test)
  fence(test)
}

function signalled(payload: string): WaitOutcome {
  return { type: 'signalled', payload }
}

/** As `waits` gives it of an open wait. */
function open(runId: string, position = 0, key = 'approval'): WaitRecord {
  return { type: 'signal', runId, position, key, state: 'open', payload: null }
}

function opening(test: Test): void {
  test('a wait is open until a signal comes, and looks the same to whoever asks again', async (world) => {
    await world.start('a', 't1')
    assert.deepEqual(await world.wait('a', 't1'), WAITING)
    assert.deepEqual(await world.wait('a', 't1'), WAITING)
    assert.deepEqual(await world.waits('a'), [open('a')])
    assert.deepEqual(await world.signal('approval', '"yes"'), { type: 'delivered', runId: 'a', woken: false })
    assert.deepEqual(await world.waits('a'), [{ ...open('a'), state: 'signalled', payload: '"yes"' }])
    assert.deepEqual(await world.wait('a', 't1'), signalled('"yes"'))
    assert.deepEqual(await world.wait('a', 't1'), signalled('"yes"'), 'until its outcome is recorded')
  })

  test('its timer is recorded with it, once', async (world) => {
    await world.start('a', 't1')
    const timer = outcome(0, { type: 'timer', verb: 'waitForSignal', value: '5000' })
    assert.deepEqual(await world.wait('a', 't1', { entries: [timer] }), WAITING)
    const history = await world.history('a')
    assert.deepEqual(history, [{ ...timer, recordedAt: world.clock.now() }])
    world.clock.pass(100)
    assert.deepEqual(await world.wait('a', 't1', { entries: [timer] }), WAITING)
    assert.deepEqual(await world.history('a'), history)
    assert.deepEqual(await world.waits('a'), [open('a')], 'a timer is no outcome')
  })

  test('a signal that came early is taken by the first wait that comes, and by no other', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.signal('approval', '"early"')
    const timer = outcome(0, { type: 'timer', verb: 'waitForSignal', value: '5000' })
    assert.deepEqual(await world.wait('a', 't1', { entries: [timer] }), signalled('"early"'))
    assert.equal((await world.history('a')).length, 1)
    assert.deepEqual(await world.wait('b', 't2'), WAITING)
    assert.deepEqual(await world.wait('a', 't1'), signalled('"early"'), 'and stays with it, also after a lost answer')
  })

  test('what other runs and other positions wait for is apart', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.wait('a', 't1', { position: 3, key: 'x' })
    await world.wait('a', 't1', { position: 7, key: 'y' })
    await world.wait('b', 't2', { position: 3, key: 'z' })
    await world.signal('y', '1')
    assert.deepEqual(await world.wait('a', 't1', { position: 3, key: 'x' }), WAITING)
    assert.deepEqual(await world.wait('a', 't1', { position: 7, key: 'y' }), signalled('1'))
    assert.deepEqual(await world.wait('b', 't2', { position: 3, key: 'z' }), WAITING)
    const asked = [
      { runId: 'a', position: 3 },
      { runId: 'nowhere', position: 0 },
      { runId: 'a', position: 7 },
      { runId: 'b', position: 7 },
    ]
    assert.deepEqual([...(await world.store.signals(asked))], [[2, '1']])
    assert.deepEqual([...(await world.store.signals([]))], [])
  })
}

function keys(test: Test): void {
  test('a key belongs to the run with an open wait on it: another run is told who', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.wait('a', 't1')
    const timer = outcome(0, { type: 'timer' })
    assert.deepEqual(await world.wait('b', 't2', { entries: [timer] }), { type: 'taken', holder: 'a' })
    assert.deepEqual(await world.waits('b'), [])
    assert.deepEqual(await world.history('b'), [], 'nothing was opened, and nothing recorded')
    await world.signal('approval', '1')
    assert.deepEqual(await world.wait('a', 't1'), signalled('1'))
    assert.deepEqual(await world.wait('b', 't2'), WAITING, 'a wait that was resolved holds no key')
  })

  test('a run that is suspended holds its key', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.settle('a', 't1', suspendUntil(null))
    await world.start('b', 't2')
    assert.deepEqual(await world.wait('b', 't2'), { type: 'taken', holder: 'a' })
  })

  test('several waits of one run on one key all get the next signal; later ones wait for the one after', async (world) => {
    await world.start('a', 't1')
    for (const position of [1, 2]) assert.deepEqual(await world.wait('a', 't1', { position }), WAITING)
    assert.deepEqual(await world.signal('approval', '1'), { type: 'delivered', runId: 'a', woken: false })
    assert.deepEqual(await world.wait('a', 't1', { position: 3 }), WAITING)
    assert.deepEqual(await world.signal('approval', '2'), { type: 'delivered', runId: 'a', woken: false })
    const payloads = await world.store.signals([1, 2, 3].map((position) => ({ runId: 'a', position })))
    assert.deepEqual(
      [...payloads].toSorted(([a], [b]) => a - b),
      [
        [0, '1'],
        [1, '1'],
        [2, '2'],
      ],
    )
    assert.deepEqual(await world.signal('approval', '3'), { type: 'buffered' })
  })

  test('keys are told apart exactly', async (world) => {
    await world.start('a', 't1')
    const names = ['k', 'K', 'k ', ' k', '', 'k%', 'k_', '\u00e9', 'e\u0301']
    for (const [position, key] of names.entries()) await world.wait('a', 't1', { position, key })
    for (const [position, key] of names.entries()) {
      assert.deepEqual(await world.signal(key, `${position}`), { type: 'delivered', runId: 'a', woken: false })
    }
    const payloads = await world.store.signals(names.map((_, position) => ({ runId: 'a', position })))
    assert.deepEqual(
      [...payloads],
      names.map((_, position) => [position, `${position}`]),
    )
  })
}

function expiry(test: Test): void {
  test('a wait whose time is over is closed: a signal that comes later is for someone else', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    assert.deepEqual(await world.expire('a', 't1'), EXPIRED)
    assert.deepEqual(await world.expire('a', 't1'), EXPIRED)
    assert.deepEqual(await world.waits('a'), [{ ...open('a'), state: 'expired' }])
    assert.deepEqual(await world.signal('approval', '1'), { type: 'buffered' })
    assert.deepEqual(await world.wait('a', 't1'), EXPIRED, 'what was said of it stays')
    await world.start('b', 't2')
    assert.deepEqual(await world.wait('b', 't2'), signalled('1'))
  })

  test('a signal that came first has come', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.signal('approval', '1')
    assert.deepEqual(await world.expire('a', 't1'), signalled('1'))
    assert.deepEqual(await world.wait('a', 't1'), signalled('1'))
  })

  test('one wait that expires leaves the others of its run and key open', async (world) => {
    await world.start('a', 't1')
    for (const position of [1, 2]) await world.wait('a', 't1', { position })
    assert.deepEqual(await world.expire('a', 't1', 1), EXPIRED)
    assert.deepEqual(await world.signal('approval', '1'), { type: 'delivered', runId: 'a', woken: false })
    assert.deepEqual(await world.wait('a', 't1', { position: 1 }), EXPIRED)
    assert.deepEqual(await world.wait('a', 't1', { position: 2 }), signalled('1'))
  })
}

function removal(test: Test): void {
  test('a wait goes with the outcome recorded for its position, and frees its key', async (world) => {
    await world.start('a', 't1')
    for (const position of [4, 5]) await world.wait('a', 't1', { position })
    await world.checkpoint('a', 't1', [outcome(0, { type: 'timer', position: 5 }), outcome(1, { position: 4 })])
    assert.deepEqual(await world.waits('a'), [open('a', 5)])
    await world.checkpoint('a', 't1', [outcome(2, { position: 5 })])
    assert.deepEqual(await world.waits('a'), [])
    assert.deepEqual(await world.signal('approval', '1'), { type: 'buffered' })
  })

  test('the outcome of another run’s equal position takes nothing', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.wait('a', 't1', { position: 0 })
    await world.checkpoint('b', 't2', [outcome(0, { position: 0 })])
    assert.deepEqual(await world.waits('a'), [open('a')])
  })

  const ends: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
    success: (world) => world.settle('a', 't1', SUCCEED),
    error: (world) => world.settle('a', 't1', FAIL),
    cancellation: async (world) => {
      await world.settle('a', 't1', suspendUntil(null))
      await world.cancel('a')
    },
    'cancellation with its parent': async (world) => {
      await world.settle('a', 't1', suspendUntil(null))
      await world.cancel('parent')
    },
    'one crash too many': async (world) => {
      world.clock.pass(LEASE_MS)
      await world.reclaim()
    },
  }
  for (const [end, apply] of Object.entries(ends)) {
    test(`the end of a run takes its waits along: ${end}`, async (world) => {
      await world.enqueue('parent')
      await world.start('a', 't1', { maxRecoveries: 0, parentId: 'parent' })
      await world.wait('a', 't1', { position: 1 })
      await world.wait('a', 't1', { position: 2, key: 'other' })
      await world.signal('other', '1')
      await apply(world)
      assert.deepEqual(await world.waits('a'), [])
      assert.deepEqual([...(await world.store.signals([{ runId: 'a', position: 2 }]))], [])
      await world.start('b', 't2')
      assert.deepEqual(await world.wait('b', 't2', { position: 1 }), WAITING, 'the key is free')
    })
  }

  test('a requeued run waits anew', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.signal('approval', '"before"')
    await world.settle('a', 't1', FAIL)
    await world.requeue('a')
    await world.claim(['t2'])
    assert.deepEqual(await world.wait('a', 't2'), WAITING)
  })

  test('a hand-back and a crash keep waits and what has come for them', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1', { position: 1 })
    await world.wait('a', 't1', { position: 2, key: 'other' })
    await world.settle('a', 't1', RELEASE)
    assert.deepEqual(await world.signal('approval', '1'), { type: 'delivered', runId: 'a', woken: false })
    await world.claim(['t2'])
    assert.deepEqual(await world.wait('a', 't2', { position: 1 }), signalled('1'))
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    await world.signal('other', '2')
    await world.claim(['t3'])
    assert.deepEqual(await world.wait('a', 't3', { position: 2, key: 'other' }), signalled('2'))
  })
}

function suspension(test: Test): void {
  test('a signal wakes the run that is suspended for it', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.settle('a', 't1', suspendUntil(world.clock.now() + 60_000))
    world.clock.pass(100)
    assert.deepEqual(await world.signal('approval', '1'), { type: 'delivered', runId: 'a', woken: true })
    assertHas(await world.run('a'), { status: 'WAITING', dueAt: world.clock.now() })
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
    assert.deepEqual(await world.wait('a', 't2'), signalled('1'))
  })

  test('so it does when no time would', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.settle('a', 't1', suspendUntil(null))
    assertHas(await world.run('a'), { status: 'WAITING', dueAt: null })
    world.clock.pass(365 * 24 * 3_600_000)
    assert.equal(await world.nextAt(), null)
    await world.signal('approval', '1')
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
  })

  test('a signal that comes between the wait and the suspension is not lost (D-31)', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    assert.deepEqual(await world.signal('approval', '1'), { type: 'delivered', runId: 'a', woken: false })
    const answer = await world.settle('a', 't1', suspendUntil(world.clock.now() + 60_000))
    assert.ok(answer.type === 'applied')
    assertHas(answer, { status: 'WAITING', dueAt: world.clock.now() })
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
  })

  test('in one batch with the suspension it is not lost either, whichever comes first', async (world) => {
    for (const order of ['signal first', 'suspension first']) {
      await world.start(order, order)
      await world.wait(order, order, { key: order })
      const suspend = {
        type: 'settle',
        runId: order,
        token: order,
        entries: [],
        settlement: suspendUntil(null),
      } as const
      const signal = { type: 'signal', commandId: order, key: order, payload: '1' } as const
      await world.commitAll(order === 'signal first' ? [signal, suspend] : [suspend, signal])
      assert.deepEqual(await world.claimIds([`${order} again`]), [order])
    }
  })

  test('a signal whose outcome is recorded wakes nobody any more', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1', { position: 1 })
    await world.wait('a', 't1', { position: 2, key: 'other' })
    await world.signal('approval', '1')
    const wakeAt = world.clock.now() + 60_000
    await world.settle('a', 't1', suspendUntil(wakeAt), [outcome(0, { position: 1 })])
    assertHas(await world.run('a'), { status: 'WAITING', dueAt: wakeAt })
    assert.deepEqual(await world.waits('a'), [open('a', 2, 'other')])
  })

  test('an expired wait alone makes nothing due', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.expire('a', 't1')
    const wakeAt = world.clock.now() + 60_000
    await world.settle('a', 't1', suspendUntil(wakeAt))
    assert.equal((await world.run('a')).dueAt, wakeAt)
  })

  test('a second signal finds the run that the first has woken, and is kept for the next wait', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.settle('a', 't1', suspendUntil(null))
    await world.signal('approval', '1')
    const { dueAt } = await world.run('a')
    world.clock.pass(50)
    assert.deepEqual(await world.signal('approval', '2'), { type: 'buffered' })
    assert.equal((await world.run('a')).dueAt, dueAt)
    await world.claim(['t2'])
    assert.deepEqual(await world.wait('a', 't2'), signalled('1'))
  })
}

function fence(test: Test): void {
  test('without the live claim no wait is opened, looked at or closed', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.enqueue('enqueued')
    for (const [id, token] of [
      ['a', 'another'],
      ['enqueued', 't1'],
      ['nowhere', 't1'],
    ] as const) {
      const entries = [outcome(0, { type: 'timer' })]
      assert.deepEqual(await world.wait(id, token, { position: 1, key: 'other', entries }), CLAIM_LOST)
      assert.deepEqual(await world.expire(id, token), CLAIM_LOST)
    }
    assert.deepEqual(await world.waits('a'), [open('a')])
    assert.deepEqual(await world.history('a'), [])
    assert.deepEqual(await world.signal('other', '1'), { type: 'buffered' })
  })

  test('nor by the zombie of a claim that was suspended or reclaimed', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', suspendUntil(null))
    assert.deepEqual(await world.wait('a', 't1'), CLAIM_LOST)
    await world.start('b', 't2')
    await world.wait('b', 't2')
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    await world.claim(['t3'])
    assert.deepEqual(await world.expire('b', 't2'), CLAIM_LOST)
    assert.deepEqual(await world.wait('b', 't3'), WAITING)
  })
}
