/** SQL of users, where the store has any: it is committed with its record, or not at all. */
import assert from 'node:assert/strict'
import type { SqlAccess, SqlTransactions, TransactRequest } from '../contract.ts'
import { CLAIM_LOST, outcome } from './makers.ts'
import type { Test, World } from './world.ts'

type Body = (sql: SqlAccess) => Promise<string>

const ENTRY = outcome(0, { verb: 'transaction', name: 'count', position: 3 })

export function transact(test: Test): void {
  const given = givenSql(test)
  outcomes(given)
  endings(given)
}

type Given = (title: string, body: (world: World, transactions: SqlTransactions) => Promise<void>) => void

function givenSql(test: Test): Given {
  return (title, body) =>
    test(title, async (world) => {
      const { transactions } = world.store
      // A store without SQL has nothing to show.
      if (transactions === undefined) return
      await world.start('a', 't1')
      await body(world, transactions)
    })
}

function outcomes(given: Given): void {
  given('the value of a body is recorded', async (world, transactions) => {
    world.clock.pass(100)
    const one: Body = async (sql) => JSON.stringify(await sql.query('select 1 as one', []))
    const performed = { type: 'performed', value: '[{"one":1}]', cancelRequested: false }
    assert.deepEqual(await transactions.transact(request(), one), performed)
    const recorded = { ...ENTRY, failed: false, value: '[{"one":1}]', recordedAt: world.clock.now() }
    assert.deepEqual(await world.history('a'), [recorded])
  })

  given('one that is recorded is answered without its body', async (world, transactions) => {
    const first = await transactions.transact(request(), async () => '1')
    const never: Body = () => assert.fail('called again')
    assert.deepEqual(await transactions.transact(request(), never), first)
    assert.equal((await world.history('a')).length, 1)
  })

  given('a body that throws has recorded nothing, and its entry can be another', async (world, transactions) => {
    const error = new Error('thrown')
    const failed = await transactions.transact(request(), async () => {
      throw error
    })
    assert.ok(failed.type === 'rolledBack')
    assert.deepEqual([failed.error, failed.interfered], [error, false])
    await failed.settled
    assert.deepEqual(await world.history('a'), [])
    assert.equal((await transactions.transact(request(), async () => '2')).type, 'performed')
  })
}

function endings(given: Given): void {
  given('under another token nothing is recorded', async (world, transactions) => {
    const lost = await transactions.transact(request({ token: 'other' }), async () => '1')
    assert.deepEqual(lost, CLAIM_LOST)
    assert.deepEqual(await world.history('a'), [])
  })

  given('a claim that is lost while the body runs takes the transaction with it', async (world, transactions) => {
    const losing: Body = async () => {
      world.clock.pass(3_600_000)
      await world.store.reclaim({ deadOwners: [], limit: 10 })
      return '1'
    }
    assert.deepEqual(await transactions.transact(request(), losing), CLAIM_LOST)
    assert.deepEqual(await world.history('a'), [])
  })

  given('a request to cancel is told', async (world, transactions) => {
    await world.cancel('a')
    const performed = { type: 'performed', value: '1', cancelRequested: true }
    assert.deepEqual(await transactions.transact(request(), async () => '1'), performed)
  })

  given('an abort rolls back at once, whatever the body does', async (world, transactions) => {
    const controller = new AbortController()
    const reason = new Error('aborted')
    const endless: Body = () => {
      controller.abort(reason)
      return new Promise(() => {})
    }
    const { signal } = controller
    const aborted = await transactions.transact(request({ signal }), endless)
    assert.ok(aborted.type === 'rolledBack')
    assert.deepEqual([aborted.error, aborted.interfered], [reason, false])
    assert.deepEqual(await world.history('a'), [])
  })

  given('the access ends with the transaction', async (_world, transactions) => {
    let kept: SqlAccess | undefined
    await transactions.transact(request(), async (sql) => {
      kept = sql
      return '1'
    })
    await assert.rejects(async () => kept?.query('select 1 as one', []), { code: 'TRANSACTION_CLOSED' })
  })
}

function request(differing: Partial<TransactRequest> = {}): TransactRequest {
  return {
    ...{ runId: 'a', token: 't1', name: 'count', entry: { ...ENTRY, failed: false, value: null } },
    ...{ isolationLevel: null, signal: new AbortController().signal, ...differing },
  }
}
