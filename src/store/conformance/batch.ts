/** Batches: one transaction, whole or not at all, and no command hinders another. */
import assert from 'node:assert/strict'
import type { Command } from '../contract.ts'
import {
  accepted,
  applied,
  CLAIM_LOST,
  DEFINITION,
  newClaim,
  newRun,
  numbered,
  outcome,
  RELEASE,
  SUCCEED,
  suspendUntil,
} from './makers.ts'
import type { Test, World } from './world.ts'

/** No database stores it: its numbers are no numbers. */
function unstorable(id: string): Command {
  return { type: 'enqueue', commandId: `start of ${id}`, runs: [newRun(id, { maxRecoveries: Number.NaN })] }
}

export function batch(test: Test): void {
  independence(test)
  atomicity(test)
}

function independence(test: Test): void {
  test('each command has its own outcome, in order; refused ones hinder no other', async (world) => {
    await world.enqueue(
      'enqueued',
      newRun('claimed', { claim: newClaim('t1') }),
      newRun('other', { claim: newClaim('t2') }),
    )
    await world.enqueue('cancelled', 'cancel me')
    await world.cancel('cancelled')
    const outcomes = await world.commitAll([
      { type: 'enqueue', commandId: 'c1', runs: [newRun('new')] },
      { type: 'enqueue', commandId: 'c2', runs: [newRun('half'), newRun('enqueued', { inputHash: 'x' })] },
      { type: 'checkpoint', runId: 'claimed', token: 'stale', entries: [outcome(0)] },
      { type: 'settle', runId: 'other', token: 't2', entries: [outcome(0)], settlement: SUCCEED },
      { type: 'cancel', commandId: 'c3', runId: 'nowhere' },
      { type: 'requeue', commandId: 'c4', runId: 'cancelled' },
      { type: 'requeue', commandId: 'c5', runId: 'not there' },
      { type: 'cancel', commandId: 'c6', runId: 'cancel me' },
      { type: 'settle', runId: 'gone', token: 't9', entries: [], settlement: RELEASE },
    ])
    assert.deepEqual(outcomes, [
      accepted('new'),
      { type: 'mismatch', id: 'enqueued', definition: DEFINITION },
      CLAIM_LOST,
      applied({ status: 'SUCCESS', ending: { status: 'SUCCESS', output: '"done"' } }),
      { type: 'notCancelled', status: null },
      { type: 'requeued' },
      { type: 'notRequeued', status: null, holder: null },
      { type: 'cancelled', rippled: false },
      CLAIM_LOST,
    ])
    const ids = ['new', 'half', 'enqueued', 'claimed', 'other', 'cancelled', 'cancel me']
    assert.deepEqual(
      (await world.store.runs(ids)).map((run) => run?.status),
      ['ENQUEUED', undefined, 'ENQUEUED', 'PENDING', 'SUCCESS', 'ENQUEUED', 'CANCELLED'],
    )
    assert.deepEqual(await world.history('claimed'), [])
    assert.equal((await world.history('other')).length, 1)
  })

  test('an empty batch has no outcomes', async (world) => {
    assert.deepEqual(await world.store.commit([]), [])
  })

  test('a batch of a thousand commands', async (world) => {
    const ids = numbered('run', 500)
    await world.commitAll(
      ids.map((id) => ({ type: 'enqueue', commandId: id, runs: [newRun(id, { claim: newClaim(`t ${id}`) })] })),
    )
    const settled = await world.commitAll([
      ...ids.map(
        (id): Command => ({
          type: 'settle',
          runId: id,
          token: `t ${id}`,
          entries: [outcome(0), outcome(1)],
          settlement: SUCCEED,
        }),
      ),
      ...ids.map((id): Command => ({ type: 'enqueue', commandId: `2 ${id}`, runs: [newRun(`2 ${id}`)] })),
    ])
    assert.equal(settled.filter((answer) => answer.type === 'applied' && answer.status === 'SUCCESS').length, 500)
    assert.equal(settled.filter((answer) => answer.type === 'accepted').length, 500)
    assert.equal((await world.store.list({ limit: 2_000, status: ['SUCCESS'] })).length, 500)
    assert.equal((await world.history('run 499')).length, 2)
  })

  test('a resent batch, as after a lost answer, changes nothing and answers alike', async (world) => {
    await world.start('held', 't1')
    await world.start('ending', 't2')
    await world.enqueue('cancelled')
    const commands: readonly Command[] = [
      { type: 'enqueue', commandId: 'c1', runs: [newRun('a'), newRun('b')] },
      { type: 'checkpoint', runId: 'held', token: 't1', entries: [outcome(0)] },
      { type: 'settle', runId: 'ending', token: 't2', entries: [outcome(0)], settlement: RELEASE },
      { type: 'cancel', commandId: 'c2', runId: 'cancelled' },
    ]
    const first = await world.commitAll(commands)
    const before = await everything(world)
    world.clock.pass(1_000)
    assert.deepEqual(await world.commitAll(commands), first)
    assert.deepEqual(await everything(world), before)
  })
}

function atomicity(test: Test): void {
  test('when a commit rejects, nothing of it is stored', async (world) => {
    await world.start('held', 't1')
    await world.start('ending', 't2')
    await world.enqueue('waiting in line')
    const commands: readonly Command[] = [
      { type: 'enqueue', commandId: 'c1', runs: [newRun('a', { claim: newClaim('t3') }), newRun('b')] },
      { type: 'checkpoint', runId: 'held', token: 't1', entries: [outcome(0)] },
      { type: 'settle', runId: 'ending', token: 't2', entries: [outcome(0)], settlement: SUCCEED },
      { type: 'cancel', commandId: 'c2', runId: 'waiting in line' },
      unstorable('poison'),
      { type: 'enqueue', commandId: 'c3', runs: [newRun('c')] },
    ]
    const { before, answered } = await untilRejected(world, commands)
    assert.ok(answered <= 4, 'the command that was refused is not answered')
    assert.deepEqual(await everything(world), before)
    assert.deepEqual(await world.store.runs(['poison', 'c']), [undefined, undefined])
  })

  test('nor of what its commands did besides: other runs, waits, signals, key-values', async (world) => {
    await world.start('parent', 'p')
    await world.settle('parent', 'p', suspendUntil(null, { position: 0, runId: 'child' }))
    await world.start('other', 'o')
    await world.start('child', 'c', { parentId: 'parent' })
    await world.kv({ type: 'put', key: 'old', value: '1', hash: '#1' })
    const put = { type: 'put', key: 'k', value: '1', hash: '#1' } as const
    const effects = [put, { type: 'start', run: newRun('follow-up', { kv: [put] }) }] as const
    const action = { type: 'start', run: newRun('grandchild') } as const
    const entry = outcome(0, { value: null })
    const commands: readonly Command[] = [
      { type: 'kv', commandId: 'k1', change: { type: 'delete', key: 'old' } },
      {
        type: 'wait',
        runId: 'other',
        token: 'o',
        position: 0,
        key: 'approval',
        entries: [outcome(0, { type: 'timer' })],
      },
      { type: 'signal', commandId: 's1', key: 'approval', payload: '1' },
      { type: 'perform', runId: 'child', token: 'c', entry, action },
      { type: 'cancel', commandId: 'c1', runId: 'parent' },
      unstorable('poison'),
    ]
    const { before } = await untilRejected(world, commands)
    assert.deepEqual(await everything(world), before)
    const settle: Command = {
      type: 'settle',
      runId: 'other',
      token: 'o',
      entries: [outcome(0, { effects })],
      settlement: SUCCEED,
    }
    const { before: second } = await untilRejected(world, [settle, unstorable('poison')])
    assert.deepEqual(await everything(world), second)
  })

  test('a command is stored whole or not at all', async (world) => {
    const runs = [newRun('a'), newRun('b', { maxRecoveries: Number.NaN }), newRun('c')]
    await assert.rejects(world.store.commit([{ type: 'enqueue', commandId: 'c1', runs }]))
    assert.deepEqual(await world.store.runs(['a', 'b', 'c']), [undefined, undefined, undefined])
    assert.deepEqual(await world.store.inputs(['a', 'b', 'c']), [undefined, undefined, undefined])
  })

  test('the same commands without the refused one are applied afterwards', async (world) => {
    await world.start('held', 't1')
    const good: Command = { type: 'checkpoint', runId: 'held', token: 't1', entries: [outcome(0)] }
    await untilRejected(world, [good, unstorable('poison')])
    assert.deepEqual(await world.commit(good), applied())
    assert.equal((await world.history('held')).length, 1)
    await world.enqueue('a')
    assert.deepEqual(await world.claimIds(['t2', 't3']), ['a'])
  })
}

/** Commits batch by batch, as a store may stop early, up to the one that is refused. */
async function untilRejected(
  world: World,
  commands: readonly Command[],
): Promise<{ readonly before: unknown; readonly answered: number }> {
  let answered = 0
  for (;;) {
    const before = await everything(world)
    try {
      answered += (await world.store.commit(commands.slice(answered))).length
    } catch {
      return { before, answered }
    }
    assert.ok(answered < commands.length, 'a command that no database can store was accepted')
  }
}

async function everything(world: World): Promise<unknown> {
  const runs = await world.store.list({ limit: 100 })
  return {
    runs: await Promise.all(runs.map(({ id }) => world.everythingOf(id))),
    values: await world.store.scan('', null, 100),
  }
}
