/** Values: texts come back as they were, whatever is in them, and numbers as numbers. */
import assert from 'node:assert/strict'
import { applied, newClaim, newProcess, newRun, OWNER, outcome } from './makers.ts'
import { from } from './sources.ts'
import type { Test } from './world.ts'

/** What has broken other stores: quoting, patterns, affinity, collation, encodings. */
const ODD_TEXTS: readonly string[] = [
  '',
  ' ',
  "it's",
  '"double" `back` \\slash\\',
  "'; drop table perdure_runs; --",
  '%',
  '_',
  'a%b_c*?[x]',
  '$1 ? :name @name #{x} \u0024{x}',
  '007',
  '1e3',
  '0x10',
  '-0',
  'null',
  'NULL',
  'true',
  'NaN',
  '9007199254740993',
  'tab\tnew\nline\r\nend',
  'ÄÖÜ ß ı İ',
  'e\u0301 is not \u00e9',
  '日本語 العربية עברית',
  '😀👩‍👩‍👧‍👦🏳️‍🌈',
  '\u200b\u202e\ufeff\ufffd\uffff',
  '"\\u0000"',
  '{"nul":"\\u0000","surrogate":"\\ud800"}',
  '__proto__',
  'constructor',
  'x'.repeat(3_000),
]

export function values(test: Test): void {
  texts(test)
  sizes(test)
  types(test)
}

function texts(test: Test): void {
  test('odd texts are data wherever they stand', async (world) => {
    for (const [n, text] of ODD_TEXTS.entries()) {
      const id = `run ${n}${text}`
      const token = `token ${n}${text}`
      // A queue always has a name, so a store may keep the empty one for the internal queue.
      const named = `queue ${text}`
      const given = { definition: text, input: text, inputHash: text, queue: named } as const
      const claim = newClaim(token, { owner: `owner ${n}${text}` })
      await world.commit({ type: 'enqueue', commandId: `c ${n}${text}`, runs: [newRun(id, { ...given, claim })] })
      const row = await world.run(id)
      const { definition, inputHash, queue, owner, startId } = row
      assert.deepEqual(
        { id: row.id, definition, inputHash, queue, owner, startId, token: row.token },
        {
          id,
          definition: text,
          inputHash: text,
          queue: named,
          owner: claim.owner,
          startId: `c ${n}${text}`,
          token,
        },
      )
      assert.deepEqual(await world.store.inputs([id]), [text])

      const entry = outcome(0, { verb: text, name: text, value: text, notes: text })
      assert.deepEqual(await world.checkpoint(id, token, [entry]), applied())
      assert.deepEqual(await world.history(id), [{ ...entry, recordedAt: world.clock.now() }])
      await world.cancel(id, `cancel ${n}${text}`)
      assert.deepEqual(await world.store.cancelRequests(claim.owner), [{ runId: id, token }])
    }
    assert.equal((await world.store.list({ limit: 1_000 })).length, ODD_TEXTS.length)
  })

  test('odd texts name definitions, owners and runs exactly: no pattern, no case, no trimming', async (world) => {
    await world.enqueue(...ODD_TEXTS.map((text, n) => newRun(`run ${n}`, { definition: text })))
    for (const [n, text] of ODD_TEXTS.entries()) {
      assert.deepEqual(
        (await world.store.list({ limit: 1_000, definition: text })).map(({ id }) => id),
        [`run ${n}`],
      )
      assert.deepEqual(await world.claimIds([`t ${n}`, `u ${n}`], { definitions: [text], owner: text }), [`run ${n}`])
    }
    for (const [n, text] of ODD_TEXTS.entries()) {
      const reclaimed = await world.reclaim([text])
      assert.deepEqual(
        reclaimed.map(({ id }) => id),
        [`run ${n}`],
      )
    }
  })

  test('odd texts name queues, lanes, versions, deduplication ids, keys and signals', async (world) => {
    const texts = ODD_TEXTS.map((text, n) => [n, text] as const)
    for (const [n, text] of texts) {
      const queue = `${n}${text}`
      await world.register(queue, { partitioned: true, globalConcurrency: 1 })
      const dedup = { id: text, policy: 'reject' } as const
      await world.enqueue(newRun(queue, { queue, partitionKey: text, dedup, parentId: text }))
      await world.enqueue(newRun(`second ${n}`, { queue, partitionKey: text }))
      assert.equal((await world.enqueue(newRun(`twin ${n}`, { queue, dedup }))).type, 'deduplicated', text)
      const request = { sources: [from(queue)], version: `v${text}` } as const
      assert.deepEqual(await world.claimIds([`t ${n}`, `u ${n}`], request), [queue])
      const { lane, partitionKey, version, dedupId, parentId } = await world.run(queue)
      assert.deepEqual([lane, partitionKey, version, dedupId, parentId], [text, text, `v${text}`, text, text])
      assert.deepEqual(await world.wait(queue, `t ${n}`, { key: text }), { type: 'waiting' })
      assert.deepEqual(await world.signal(text, text), { type: 'delivered', runId: queue, woken: false })
      assert.deepEqual(await world.wait(queue, `t ${n}`, { key: text }), { type: 'signalled', payload: text })
      await world.kv({ type: 'put', key: text, value: text, hash: text })
      assert.equal((await world.store.queueStats(queue)).pending, 1)
      assert.equal((await world.store.list({ limit: 10, queue })).length, 2)
    }
    assert.deepEqual(await world.store.values(ODD_TEXTS), ODD_TEXTS)
    assert.equal((await world.store.scan('', null, 1_000)).length, ODD_TEXTS.length)
    assert.equal((await world.store.queues()).length, ODD_TEXTS.length)
  })

  test('odd texts end runs', async (world) => {
    for (const [n, text] of ODD_TEXTS.entries()) {
      const [good, bad] = [`good ${n}`, `bad ${n}`]
      await world.start(good, good)
      await world.settle(good, good, { type: 'succeed', output: text })
      assert.deepEqual(await world.ending(good), { status: 'SUCCESS', output: text })
      await world.start(bad, bad)
      const failure = { kind: 'error', error: text } as const
      await world.settle(bad, bad, { type: 'fail', failure })
      assert.deepEqual(await world.ending(bad), { status: 'ERROR', failure })
    }
  })

  test('odd texts register processes', async (world) => {
    for (const [n, text] of ODD_TEXTS.entries()) {
      const process = {
        owner: `${n}${text}`,
        host: text,
        pid: n,
        pidStart: text,
        bootId: text,
        pidNamespace: text,
        definitions: ODD_TEXTS.slice(n),
        queues: [text, ...ODD_TEXTS],
        version: text,
      }
      await world.store.registerProcess(process)
      const found = (await world.store.processes()).find(({ owner }) => owner === process.owner)
      assert.deepEqual(found, { ...process, registeredAt: world.clock.now() })
    }
  })

  test('no value and an empty value are two things', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0, { value: null, notes: null }), outcome(1, { value: '', notes: '' })])
    const [none, empty] = await world.history('a')
    assert.deepEqual([none?.value, none?.notes, empty?.value, empty?.notes], [null, null, '', ''])
    await world.settle('a', 't1', { type: 'fail', failure: { kind: 'error', error: '' } })
    assert.deepEqual(await world.ending('a'), { status: 'ERROR', failure: { kind: 'error', error: '' } })
  })
}

function sizes(test: Test): void {
  test('texts of a megabyte, in input, checkpoint and output', async (world) => {
    const long = JSON.stringify('ä😀'.repeat(250_000))
    await world.start('a', 't1', { input: long })
    await world.checkpoint('a', 't1', [outcome(0, { value: long }), outcome(1, { value: long, failed: true })])
    await world.settle('a', 't1', { type: 'succeed', output: long })
    // Compared with ===: a difference must not print a megabyte.
    assert.ok((await world.store.inputs(['a']))[0] === long)
    assert.ok((await world.history('a')).every(({ value }) => value === long))
    const ending = await world.ending('a')
    assert.ok(typeof ending === 'object' && ending.status === 'SUCCESS' && ending.output === long)
  })

  test('a history of three thousand entries', async (world) => {
    await world.start('a', 't1')
    for (let at = 0; at < 3_000; at += 500) {
      await world.checkpoint(
        'a',
        't1',
        Array.from({ length: 500 }, (_, n) => outcome(at + n)),
      )
    }
    const history = await world.history('a')
    assert.equal(history.length, 3_000)
    assert.ok(history.every(({ seq }, n) => seq === n))
  })
}

function types(test: Test): void {
  test('what is declared a number is a number, a boolean a boolean, nothing is null (A-03)', async (world) => {
    await world.start('a', 't1', { timeoutMs: 60_000, queue: null })
    await world.checkpoint('a', 't1', [outcome(0)])
    await world.cancel('a')
    const run = await world.run('a')
    assert.deepEqual(kinds(run), {
      ...Object.fromEntries(Object.keys(run).map((key) => [key, 'string'])),
      seq: 'number',
      queue: 'null',
      priority: 'number',
      partitionKey: 'null',
      rank: 'number',
      dedupId: 'null',
      dueAt: 'null',
      leaseUntil: 'number',
      epoch: 'number',
      version: 'null',
      parentId: 'null',
      deliveries: 'number',
      attempt: 'number',
      crashes: 'number',
      maxRecoveries: 'number',
      timeoutMs: 'number',
      deadlineAt: 'number',
      cancelRequested: 'boolean',
      createdAt: 'number',
      startedAt: 'number',
      endedAt: 'null',
      failureKind: 'null',
    })
    const [entry] = await world.history('a')
    assert.ok(entry !== undefined)
    assert.deepEqual(kinds(entry), {
      seq: 'number',
      type: 'string',
      position: 'number',
      verb: 'string',
      name: 'string',
      failed: 'boolean',
      value: 'string',
      calls: 'number',
      delivered: 'number',
      notes: 'null',
      recordedAt: 'number',
      attempts: 'number',
    })
    const [attempt] = await world.store.attempts('a')
    assert.ok(attempt !== undefined)
    assert.deepEqual(kinds(attempt), {
      epoch: 'number',
      attempt: 'number',
      outcome: 'string',
      owner: 'string',
      startedAt: 'number',
      endedAt: 'null',
      failureKind: 'null',
    })
    assert.equal(typeof (await world.store.nextExpiry()), 'number')
  })

  test('whole numbers keep their value up to the largest safe one', async (world) => {
    const large = Number.MAX_SAFE_INTEGER
    await world.start('a', 't1', { maxRecoveries: large, timeoutMs: 2 ** 40 })
    const entry = outcome(0, { position: large, calls: large, delivered: large, attempts: large })
    await world.checkpoint('a', 't1', [entry])
    assert.equal((await world.run('a')).maxRecoveries, large)
    assert.equal((await world.run('a')).timeoutMs, 2 ** 40)
    assert.deepEqual(await world.history('a'), [{ ...entry, recordedAt: world.clock.now() }])
    const process = newProcess(OWNER, { pid: 2 ** 31 })
    await world.store.registerProcess(process)
    assert.equal((await world.store.processes())[0]?.pid, 2 ** 31)
  })
}

function kinds(record: object): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(record).map(([key, value]: [string, unknown]) => [key, value === null ? 'null' : typeof value]),
  )
}
