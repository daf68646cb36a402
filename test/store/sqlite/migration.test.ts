/** Databases of earlier versions are brought up to date, with what is in them; whoever is open refuses later ones. */
import { describe, expect, it } from 'vitest'
import { StoreVersionError } from '../../../src/core/errors.ts'
import { RUN_STATUSES } from '../../../src/store/records.ts'
import { MIGRATION_0001 } from '../../../src/store/sqlite/migrations/0001.ts'
import { MIGRATION_0002 } from '../../../src/store/sqlite/migrations/0002.ts'
import { connect, freshPath, openStore } from './files.ts'
import { enqueue, newClaim, newQueue, newRun } from './requests.ts'

/** A file as version 1 made it, with a run in every status. */
async function versionOne(): Promise<string> {
  const path = freshPath()
  const database = await connect(path)
  database.exec(`
    create table perdure_meta (name text primary key, value text not null) without rowid;
    insert into perdure_meta values ('schema_version', '1'), ('clock', 'real');
    ${MIGRATION_0001}`)
  const insert = database.prepare(`
    insert into perdure_runs (id, definition, kind, status, input_hash, due_at, token, owner, lease_until, epoch,
      deliveries, attempt, crashes, max_recoveries, cancel_requested, created_at, started_at, ended_at, failure_kind,
      start_id)
    values (?, 'convert', 'workflow', ?, 'hash', ?, ?, ?, ?, 0, 1, 1, 0, 50, 0, 1, ?, ?, ?, 'start')`)
  for (const id of RUN_STATUSES) {
    const claimed = id === 'PENDING'
    const ended = id === 'SUCCESS' || id === 'ERROR' || id === 'CANCELLED' || id === 'DEAD'
    const due = id === 'WAITING' || id === 'DELAYED' ? 2 : null
    const claim = claimed ? (['token', 'owner', 3] as const) : ([null, null, null] as const)
    const kind = ended && id !== 'SUCCESS' ? 'error' : null
    insert.run(id, id, due, ...claim, claimed || ended ? 1 : null, ended ? 4 : null, kind)
  }
  database.exec(`
    insert into perdure_inputs select seq, '"in"' from perdure_runs;
    insert into perdure_endings select seq, case when status = 'SUCCESS' then '"out"' end, null
    from perdure_runs where ended_at is not null;
    insert into perdure_checkpoints select seq, 0, 'outcome', 0, 'step', 'a', 0, '1', 1, 0, null, 2, 1 from perdure_runs;
    insert into perdure_processes (owner, host, pid, registered_at) values ('owner', 'h', 7, 1);`)
  database.close()
  return path
}

describe('a database of version 1', () => {
  it('keeps its runs, which are where they were: on the internal queue', async () => {
    const store = await openStore(await versionOne())
    const runs = await store.runs(RUN_STATUSES)
    expect(runs.map((run) => run?.status)).toEqual(RUN_STATUSES)
    for (const run of runs) {
      expect(run).toMatchObject({
        definition: 'convert',
        kind: 'workflow',
        queue: null,
        lane: '',
        rank: 0,
        priority: 0,
      })
      expect(run).toMatchObject({ partitionKey: null, dedupId: null, version: null, parentId: null })
    }
    expect(await store.inputs(['DEAD'])).toEqual(['"in"'])
    expect((await store.endings(['SUCCESS'])).get('SUCCESS')).toEqual({ status: 'SUCCESS', output: '"out"' })
    expect((await store.histories(['WAITING'])).get('WAITING')).toHaveLength(1)
    expect(await store.processes()).toMatchObject([{ owner: 'owner', definitions: [], queues: [], version: null }])
  })

  it('goes on: claims, settlements, requeues, reclaims, retention and new runs', async () => {
    const store = await openStore(await versionOne())
    await enqueue(store, newRun('new'))
    expect((await store.reclaim({ deadOwners: [], limit: 10 })).runs.map(({ id }) => id)).toEqual(['PENDING'])
    const { runs } = await store.claim(newClaim(['t1', 't2', 't3', 't4', 't5', 't6'], { version: 'v1' }))
    expect(runs.map(({ run }) => run.id)).toEqual(['WAITING', 'ENQUEUED', 'DELAYED', 'PENDING', 'new'])
    const settlement = { type: 'succeed', output: '1' } as const
    const settle = { type: 'settle', runId: 'WAITING', token: 't1', entries: [], settlement } as const
    expect(await store.commit([settle])).toMatchObject([{ type: 'applied', status: 'SUCCESS' }])
    const requeue = { type: 'requeue', commandId: 'r', runId: 'ERROR' } as const
    expect(await store.commit([requeue])).toMatchObject([{ type: 'requeued' }])
    const retention = { success: 60_000, error: 60_000, dead: 60_000, cancelled: 60_000 }
    const request = { definitions: [{ name: 'convert', retention }], limit: 10 }
    let removed = 0
    // A sweep ends after a while, on a busy machine with the first.
    for (let last = 1; last > 0; removed += last) last = (await store.sweep(request)).removed
    expect(removed).toBe(3)
    expect((await store.list({ limit: 10, status: ['ENQUEUED', 'SUCCESS'] })).map(({ id }) => id)).toEqual([
      'ERROR',
      'WAITING',
    ])
  })
})

/** A file as version 2 made it: a run that has ended, one that is claimed and one that waits, each with a deduplication id. */
async function versionTwo(): Promise<string> {
  const path = freshPath()
  const database = await connect(path)
  database.exec(`
    create table perdure_meta (name text primary key, value text not null) without rowid;
    insert into perdure_meta values ('schema_version', '2'), ('clock', 'real');
    ${MIGRATION_0001}
    ${MIGRATION_0002}
    insert into perdure_runs (id, definition, kind, queue, dedup_id, status, input_hash, token, owner, lease_until, epoch,
      deliveries, attempt, crashes, max_recoveries, cancel_requested, created_at, started_at, ended_at, start_id)
    values ('ended', 'convert', 'workflow', 'media', 'a', 'SUCCESS', 'hash', 't', 'o', null, 0, 1, 1, 0, 50, 0, 1, 1, 2, 's'),
      ('claimed', 'convert', 'workflow', 'media', 'a', 'PENDING', 'hash', 't1', 'o', 3, 0, 1, 1, 0, 50, 1, 1, 1, null, 's'),
      ('waits', 'convert', 'workflow', 'media', 'b', 'ENQUEUED', 'hash', null, null, null, 0, 0, 0, 0, 50, 0, 1, null, null, 's');
    insert into perdure_inputs select seq, '"in"' from perdure_runs;
    insert into perdure_endings values (1, '"out"', null);`)
  database.close()
  return path
}

describe('a database of version 2', () => {
  it('keeps what is in it, and goes on', async () => {
    const store = await openStore(await versionTwo())
    expect(await store.inputs(['ended', 'waits'])).toEqual(['"in"', '"in"'])
    expect((await store.endings(['ended'])).get('ended')).toEqual({ status: 'SUCCESS', output: '"out"' })
    expect((await store.list({ limit: 10, queue: 'media' })).map(({ id }) => id)).toEqual(['waits', 'claimed', 'ended'])
    expect(await store.nextExpiry()).toBe(3)
    expect(await store.cancelRequests('o')).toEqual([{ runId: 'claimed', token: 't1' }])
    const dedup = { id: 'a', policy: 'reject' } as const
    const again = newRun('again', { queue: 'media', dedup })
    const command = { type: 'enqueue', commandId: 'c', runs: [again] } as const
    expect(await store.commit([command])).toMatchObject([{ type: 'deduplicated', holder: 'claimed' }])
    await store.reclaim({ deadOwners: [], limit: 10 })
    expect(await store.commit([command])).toMatchObject([{ type: 'accepted' }])
    const { runs } = await store.claim(newClaim(['u1', 'u2'], { queue: 'media' }))
    expect(runs.map(({ run, input }) => [run.id, input])).toEqual([
      ['waits', '"in"'],
      ['again', '"intro"'],
    ])
  })
})

describe('a process that has the file open while a newer version migrates it', () => {
  const migrated = async () => {
    const path = freshPath()
    const store = await openStore(path)
    await enqueue(store, newRun('a'))
    const newer = await connect(path)
    return { store, newer }
  }

  it('writes no more', async () => {
    const { store, newer } = await migrated()
    newer.exec(`update perdure_meta set value = '999' where name = 'schema_version'; create table perdure_more (a)`)
    await expect(enqueue(store, newRun('b'))).rejects.toThrow(StoreVersionError)
    await expect(store.registerQueues([newQueue('media')])).rejects.toThrow(StoreVersionError)
    await expect(store.claim(newClaim(['t']))).rejects.toThrow(StoreVersionError)
    expect(newer.prepare('select count(*) from perdure_runs').get()).toEqual([1])
    newer.close()
  })

  it.each([
    ['an index', 'drop index perdure_runs_claimable'],
    ['a table', 'drop table perdure_queues'],
    ['a column', 'alter table perdure_runs rename column rank to other'],
  ])('is told so where its reads want for %s', async (_, change) => {
    const { store, newer } = await migrated()
    newer.exec(`update perdure_meta set value = '999' where name = 'schema_version'; ${change}`)
    await expect(store.claim(newClaim(['t']))).rejects.toThrow(StoreVersionError)
    newer.close()
  })

  it('goes on where only the application has changed its own tables', async () => {
    const { store, newer } = await migrated()
    newer.exec('create table orders (id text)')
    newer.close()
    await enqueue(store, newRun('b'))
    expect((await store.claim(newClaim(['t1', 't2']))).runs).toHaveLength(2)
  })
})
