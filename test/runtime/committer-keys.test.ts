import { describe, expect, test } from 'vitest'
import { realRandom } from '../../src/core/random.ts'
import { Committer } from '../../src/runtime/committer/committer.ts'
import { keysOf } from '../../src/runtime/committer/keys.ts'
import type { Command } from '../../src/store/contract.ts'
import { cancel, checkpoint, enqueue, expire, kv, newRun, perform, put, settle, signal, wait } from './commands.ts'
import { FastScheduler, turns } from './fast-scheduler.ts'
import { REFUSED, ScriptedStore } from './scripted-store.ts'

function committerOn(store: ScriptedStore): Committer {
  return new Committer({ store, scheduler: new FastScheduler(), random: realRandom, onTrouble: () => {} })
}

/** How the commands, given at once, were batched: by their numbers. */
async function batched(...commands: readonly Command[]): Promise<readonly (readonly number[])[]> {
  const store = new ScriptedStore()
  const committer = committerOn(store)
  await Promise.all(commands.map((command) => committer.submit(command)))
  return store.batches.map((batch) => batch.map((command) => commands.indexOf(command)))
}

const start = (id: string, text: string, differing = {}) =>
  ({ type: 'enqueue', commandId: text, runs: [newRun(id, text, differing)] }) as const
const deduplicated = (id: string, queue: string, dedupId: string) =>
  start(id, id, { queue, dedup: { id: dedupId, policy: 'reject' } })

describe('never meet in a batch', () => {
  test('starts with one deduplication id in a queue; the same id in another queue is another', async () => {
    const [a, b, c] = [deduplicated('a', 'q', 'x'), deduplicated('b', 'q', 'x'), deduplicated('c', 'r', 'x')]
    expect(await batched(a, b, c)).toEqual([[0, 2], [1]])
  })

  test('changes of one key of the KV space, however they are made', async () => {
    const withStart = start('a', 'a', { kv: [put('k', 'v')] })
    const effect = checkpoint('b', 't', 0, 'b', [put('k', 'w')])
    const deleted = checkpoint('c', 't', 0, 'c', [{ type: 'delete', key: 'k' }])
    expect(await batched(kv('k', 'x'), withStart, effect, deleted, kv('other', 'y'))).toEqual([[0, 4], [1], [2], [3]])
  })

  test('what one signal key is about: waits, and signals from outside, from bodies and from steps', async () => {
    const effect = checkpoint('b', 't', 0, 'b', [{ type: 'signal', key: 'k', payload: 'p1' }])
    const body = perform('c', 't', 0, { type: 'signal', key: 'k', payload: 'p2' })
    const commands = [signal('k', 's'), wait('a', 't', 0, 'k', 'w'), effect, body, signal('other', 's2')]
    expect(await batched(...commands)).toEqual([[0, 4], [1], [2], [3]])
  })

  test('what one run is about: its start as a child or a follow-up, and its cancellation', async () => {
    const child = perform('p', 't', 0, { type: 'start', run: newRun('child', 'c1') })
    const followUp = settleWith('q', newRun('child', 'c2'))
    expect(await batched(child, cancel('child', 'x'), followUp, enqueue(['child', 'z'], 'e'))).toEqual([
      [0],
      [1],
      [2],
      [3],
    ])
  })

  test('names of different kinds, or in other parts, are different keys', async () => {
    const commands = [
      ...[cancel('k', 'asked'), kv('k', 'v'), signal('k', 's')],
      ...[deduplicated('a', 'k', 'k/x'), deduplicated('b', 'k/k', 'x'), deduplicated('c', 'kk', 'x')],
    ]
    expect(await batched(...commands)).toEqual([[0, 1, 2, 3, 4, 5]])
  })

  function settleWith(runId: string, run: ReturnType<typeof newRun>): Command {
    const { entries } = checkpoint(runId, 't', 0, 'e', [{ type: 'start', run }])
    return { ...settle(runId, 't', 'end'), entries }
  }
})

test('a key that a command has twice is no obstacle to itself', async () => {
  const run = newRun('a', 'a', { kv: [put('k', '1'), put('k', '2')] })
  const twice = checkpoint('b', 't', 0, 'b', [put('l', '1'), put('l', '2'), { type: 'start', run: newRun('b', 'c') }])
  for (const command of [{ type: 'enqueue', commandId: 'e', runs: [run] } as const, twice]) {
    expect(await batched(command)).toEqual([[0]])
    expect(new Set(keysOf(command)).size).toBe(keysOf(command).length)
  }
})

describe('a run’s own commands', () => {
  test('are applied in order; only what changes nothing but the run is merged', async () => {
    const store = new ScriptedStore()
    const committer = committerOn(store)
    const commands = [
      checkpoint('a', 't', 0, 'c0'),
      checkpoint('a', 't', 1, 'c1'),
      perform('a', 't', 2, { type: 'signal', key: 'k', payload: 'sent' }),
      checkpoint('a', 't', 3, 'c3'),
      checkpoint('a', 't', 4, 'c4', [put('k', 'staged')]),
      checkpoint('a', 't', 5, 'c5'),
      wait('a', 't', 6, 'k', 'timer'),
      expire('a', 't', 6),
      checkpoint('a', 't', 7, 'c7'),
      settle('a', 't', 'end'),
    ]
    const outcomes = await Promise.all(commands.map((command) => committer.submit(command)))
    expect(store.batches.map(([command, ...others]) => [command?.type, others.length])).toEqual(
      ['checkpoint', 'perform', 'checkpoint', 'checkpoint', 'checkpoint', 'wait', 'expire', 'settle'].map((type) => [
        ...[type, 0],
      ]),
    )
    expect(store.applied).toEqual([
      ...['c0', 'c1', 'sent', 'c3', 'c4', 'staged', 'c5', 'timer', 'expire a t 6', 'c7', 'end'],
    ])
    expect(outcomes.map(({ type }) => type)).toEqual([
      ...['applied', 'applied', 'performed', 'applied', 'applied', 'applied', 'signalled', 'expired'],
      ...['applied', 'applied'],
    ])
    // The checkpoint that the settlement took along has not ended the run.
    expect(outcomes[8]).toMatchObject({ status: 'PENDING', ending: null, dueAt: null, rippled: false, refusals: [] })
  })

  test('given behind one that the database refuses fail with it', async () => {
    const store = new ScriptedStore([{ delayTurns: 2, kind: 'ok' }])
    const committer = committerOn(store)
    const refused = perform('a', 't', 0, { type: 'start', run: newRun('child', `input${REFUSED}`) })
    const submitted = [refused, wait('a', 't', 1, 'k', 'timer')].map((command) => committer.submit(command))
    const results = Promise.allSettled(submitted)
    await turns(1)
    const behind = await Promise.allSettled([
      committer.submit(settle('a', 't', 'end')),
      committer.submit(signal('k', 's')),
    ])
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(behind.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    expect(store.applied).toEqual(['s'])
  })
})

describe('the text of payloads counts against the bound of a batch', () => {
  const long = 'x'.repeat(3 * 1024 * 1024)
  const signalled = { type: 'signal', key: 'k', payload: long } as const
  test.each<[string, (id: string) => Command]>([
    ['inputs', (id) => start(id, id + long)],
    ['what a start puts', (id) => start(id, id, { kv: [put(`${id}-key`, id + long)] })],
    ['signals', (id) => signal(id, id + long)],
    ['values', (id) => kv(id, id + long)],
    ['performed signals', (id) => perform(id, 't', 0, { ...signalled, key: id, payload: id + long })],
    ['performed starts', (id) => perform(id, 't', 0, { type: 'start', run: newRun(`${id}-child`, id + long) })],
    ['staged values', (id) => checkpoint(id, 't', 0, id, [put(id, id + long)])],
    ['staged signals', (id) => checkpoint(id, 't', 0, id, [{ ...signalled, key: id, payload: id + long }])],
    ['staged starts', (id) => checkpoint(id, 't', 0, id, [{ type: 'start', run: newRun(`${id}-child`, id + long) }])],
  ])('%s', async (_what, make) => {
    expect(await batched(make('a'), make('b'))).toEqual([[0], [1]])
  })
})
