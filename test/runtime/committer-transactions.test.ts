import { expect, test } from 'vitest'
import { StoreClosedError, StoreUnavailableError } from '../../src/core/errors.ts'
import { realRandom } from '../../src/core/random.ts'
import { Committer } from '../../src/runtime/committer/committer.ts'
import type { SqlTransactions, TransactOutcome, TransactRequest } from '../../src/store/contract.ts'
import { cancel, checkpoint } from './commands.ts'
import { FastScheduler, turns, until } from './fast-scheduler.ts'
import { REFUSED, ScriptedStore } from './scripted-store.ts'

const PERFORMED: TransactOutcome = { type: 'performed', value: '1', cancelRequested: false }

function stage(transact: SqlTransactions['transact'], store = new ScriptedStore([{ delayTurns: 3, kind: 'ok' }])) {
  const scheduler = new FastScheduler()
  const calls: string[] = []
  const transactions: SqlTransactions = {
    isolationLevels: [],
    transact: (request, body) => {
      calls.push(request.runId)
      return transact(request, body)
    },
  }
  const options = { scheduler, random: realRandom, onTrouble: () => {} }
  return {
    committer: new Committer({ store: Object.assign(store, { transactions }), ...options }),
    scheduler,
    calls,
    store,
  }
}

function request(runId: string, token = 't'): TransactRequest {
  const entry = {
    ...({ seq: 9, type: 'outcome', position: 0, verb: 'transaction', name: 'x', failed: false, value: null } as const),
    ...{ calls: 1, delivered: 0, notes: null, attempts: 1 },
  }
  return { runId, token, name: 'x', entry, isolationLevel: null, signal: new AbortController().signal }
}
const body = async (): Promise<string> => '1'

test('a transaction is opened when what was given before for its run is stored, and nothing waits for it', async () => {
  let commit = (_outcome: TransactOutcome): void => {}
  const opened = (): Promise<TransactOutcome> =>
    new Promise((resolve) => {
      commit = resolve
    })
  const { committer, calls, store } = stage(opened)
  const before = committer.submit(checkpoint('a', 't', 0, 'before'))
  const outcome = committer.transact(request('a'), body)
  await turns(2)
  expect(calls).toEqual([])
  await before
  await until(() => calls.length === 1)
  await committer.submit(cancel('a', 'cancelled meanwhile'))
  expect(store.applied).toEqual(['before', 'cancelled meanwhile'])
  expect([committer.pending(), committer.transactions]).toEqual([1, 1])
  commit(PERFORMED)
  expect(await outcome).toEqual(PERFORMED)
  expect([committer.pending(), committer.transactions]).toEqual([0, 0])
})

test('none is opened behind what was refused under its token; another token may', async () => {
  const { committer, calls } = stage(async () => PERFORMED)
  const refused = committer.submit(checkpoint('a', 't', 0, REFUSED))
  const behind = committer.transact(request('a'), body)
  const other = committer.transact(request('a', 'other'), body)
  await expect(refused).rejects.toThrow('refused')
  await expect(behind).rejects.toThrow('refused')
  expect(await other).toEqual(PERFORMED)
  expect(calls).toEqual(['a'])
})

test('trouble of the store is told to the caller, who knows whether to go on', async () => {
  const { committer } = stage(async () => {
    throw new StoreUnavailableError({ store: 's', problem: 'gone' })
  })
  await expect(committer.transact(request('a'), body)).rejects.toBeInstanceOf(StoreUnavailableError)
  await committer.idle()
})

test('close waits for an open transaction, and gives it up when that lasts too long', async () => {
  const { committer, scheduler, calls } = stage(() => new Promise(() => {}))
  scheduler.held = true
  const outcome = committer.transact(request('a'), body).catch((error: unknown) => error)
  await until(() => calls.length === 1)
  const closed = committer.close(1)
  await expect(committer.transact(request('b'), body)).rejects.toBeInstanceOf(StoreClosedError)
  scheduler.pass(1)
  await closed
  expect(await outcome).toBeInstanceOf(StoreClosedError)
  expect(committer.pending()).toBe(0)
})
