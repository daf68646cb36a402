/** Wake-ups between processes: told soon and seldom, heard by others, and found again after a loss. */
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { realScheduler } from '../../../src/core/scheduler.ts'
import { Notifier } from '../../../src/store/postgres/notifier.ts'
import type { Row, Session } from '../../../src/store/postgres/session.ts'
import type { WatchOptions } from '../../../src/store/postgres/watch.ts'
import { channelOf, Watch } from '../../../src/store/postgres/watch.ts'
import { stranger } from './databases.ts'
import { Relay } from './relay.ts'
import { run, serverUrl } from './server.ts'

const session: Session = {
  query: async (sql, values = []) => {
    const { rows } = await run(sql, values)
    return rows.map((row) => Object.values(row))
  },
}

let schemas = 0

interface World {
  readonly schema: string
  open(options?: Partial<WatchOptions> & { readonly url?: string }): Promise<Opened>
}
interface Opened {
  readonly watch: Watch
  readonly troubles: unknown[]
  /** Calls so far. */
  calls(): number
  /** Resolves when there have been so many. */
  called(times: number): Promise<void>
}

/** Processes that share a schema, which needs no tables here. */
function newWorld(): World {
  schemas += 1
  const schema = `watched ${process.pid} ${schemas}`
  return {
    schema,
    open: async ({ url, ...options } = {}) => {
      const connectionString = url ?? (await serverUrl())
      const troubles: unknown[] = []
      const watch = new Watch({
        schema,
        read: (body) => body(session),
        newClient: (but) => new pg.Client({ connectionString, application_name: schema, ...but }),
        onTrouble: (error) => troubles.push(error),
        ...options,
      })
      onTestFinished(() => watch.close())
      let calls = 0
      watch.on(() => {
        calls += 1
      })
      const called = async (times: number): Promise<void> => {
        while (calls < times) await sleep(1)
      }
      if (options.newClient !== null && url === undefined) await called(1)
      return { watch, troubles, calls: () => calls, called }
    },
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function listeners({ schema }: World): Promise<number> {
  const { rows } = await run('select count(*)::int as n from pg_stat_activity where application_name = $1', [schema])
  return rows[0].n
}

async function terminate({ schema }: World): Promise<void> {
  await run('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [schema])
}

/** What is told on the channel, as it comes. */
async function overhear({ schema }: World): Promise<readonly string[]> {
  const heard: string[] = []
  const client = await stranger(await serverUrl())
  client.on('notification', ({ payload }) => heard.push(payload ?? ''))
  await client.query(`listen "${channelOf(schema)}"`)
  return heard
}

describe('a change', () => {
  it('is heard by other stores of the schema, not by the one that tells it nor by other schemas', async () => {
    const world = newWorld()
    const [teller, hearer, other] = [await world.open(), await world.open(), await newWorld().open()]
    teller.watch.changed()
    await hearer.called(2)
    await sleep(50)
    expect([teller.calls(), hearer.calls(), other.calls()]).toEqual([1, 2, 1])
  })

  it('told in SQL, as a start there is, is heard by all', async () => {
    const world = newWorld()
    const [one, other] = [await world.open(), await world.open()]
    await run(`select pg_notify($1, '')`, [channelOf(world.schema)])
    await Promise.all([one.called(2), other.called(2)])
  })

  it('is told at once, and those that follow together', async () => {
    const world = newWorld()
    const heard = await overhear(world)
    const { watch } = await world.open()
    const start = performance.now()
    while (performance.now() - start < 200) {
      for (let n = 0; n < 100; n++) watch.changed()
      await realScheduler.turn()
    }
    await watch.close()
    const took = performance.now() - start
    await run('select 1')
    await sleep(20)
    expect(heard.length).toBeGreaterThan(2)
    expect(heard.length).toBeLessThanOrEqual(Math.ceil(took / 5) + 2)
  })

  it('is told before the store is closed', async () => {
    const world = newWorld()
    const hearer = await world.open()
    const { watch } = await world.open()
    for (let n = 0; n < 3; n++) watch.changed()
    await watch.close()
    await hearer.called(2)
  })

  it('is neither told nor heard where notifications are off', async () => {
    const world = newWorld()
    const heard = await overhear(world)
    const [silent, teller] = [await world.open({ newClient: null }), await world.open()]
    silent.watch.changed()
    await silent.watch.close()
    expect(heard).toEqual([])
    teller.watch.changed()
    await teller.watch.close()
    await sleep(20)
    expect([heard.length, silent.calls()]).toEqual([1, 0])
    expect(await listeners(world)).toBe(0)
  })

  it('that could not be told is told a moment later', async () => {
    let failures = 2
    let told = 0
    const troubles: unknown[] = []
    const tell = async (): Promise<readonly Row[]> => {
      failures -= 1
      if (failures >= 0) throw new Error('the connection is lost')
      told += 1
      return []
    }
    const onTrouble = (error: unknown): unknown => troubles.push(error)
    const notifier = new Notifier({ read: (body) => body({ query: tell }), channel: 'c', sender: 's', onTrouble })
    notifier.changed()
    while (told === 0) await sleep(10)
    expect(troubles).toHaveLength(2)
    await notifier.close()
    expect(told).toBe(1)
  })
})

describe('listening', () => {
  it('begins with the first who watches and ends with the last', async () => {
    const world = newWorld()
    const { watch } = await world.open({ newClient: null })
    const listening = await world.open()
    const stop = listening.watch.on(() => {})
    expect(await listeners(world)).toBe(1)
    stop()
    expect(await listeners(world)).toBe(1)
    await listening.watch.close()
    expect(await listeners(world)).toBe(0)
    await watch.close()
  })

  it('goes on after the connection was lost, and says so once', async () => {
    const world = newWorld()
    const [hearer, teller] = [await world.open(), await world.open()]
    await terminate(world)
    await Promise.all([hearer.called(2), teller.called(2)])
    expect(hearer.troubles).toHaveLength(1)
    teller.watch.changed()
    await hearer.called(3)
    expect(await listeners(world)).toBe(2)
  })

  it('goes on after a silence of the network that neither end was told of', async () => {
    const world = newWorld()
    const relay = await Relay.open(await serverUrl())
    const patience = { lookEveryMs: 50, answerWithinMs: 200 }
    const { called, troubles } = await world.open({ url: relay.url, patience })
    await called(1)
    relay.silence()
    while (troubles.length < 2) await sleep(10)
    relay.heal()
    await called(2)
  })

  it('comes to an end where there is no server, too, and while it connects', async () => {
    const world = newWorld()
    const { watch, troubles, calls } = await world.open({ url: 'postgres://127.0.0.1:9/nowhere' })
    while (troubles.length < 2) await sleep(10)
    await watch.close()
    const relay = await Relay.open(await serverUrl())
    relay.silence()
    const connecting = await world.open({ url: relay.url })
    await sleep(50)
    const start = performance.now()
    await connecting.watch.close()
    expect(performance.now() - start).toBeLessThan(2_000)
    expect(calls() + connecting.calls()).toBe(0)
  })
})

it('a channel is named after its schema, in at most 63 bytes', () => {
  expect(channelOf('perdure')).toBe('perdure:perdure')
  const long = channelOf('ä'.repeat(31))
  expect(Buffer.byteLength(long)).toBeLessThanOrEqual(63)
  expect(long).not.toBe(channelOf(`${'ä'.repeat(30)}ö`))
})
