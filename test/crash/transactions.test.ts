/** A worker is killed at random while its runs do transactions: the user's tables and the record agree at every moment. */
import { setTimeout } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { freshSchema, run as sql } from '../store/postgres/server.ts'
import { place } from './place.ts'
import { type Child, start } from './processes.ts'
import { ROUNDS } from './transactions.ts'

/** What is in the user's tables and in the histories, compared by the database. */
interface Account {
  readonly sum: number
  readonly additions: number
  readonly recorded: number
  /** Additions with a record of their value, under their run. */
  readonly agreeing: number
  readonly ended: number
}

const KILLS = 20

async function killAtRandom(args: readonly string[], look: () => Promise<Account>): Promise<Account> {
  const next = (): Child => start('transactions.ts', ...args)
  let midway = 0
  // One works while the next one loads.
  let worker = next()
  for (let kills = 0; kills < KILLS; kills += 1) {
    const successor = next()
    await worker.says('loaded')
    worker.tell('work')
    if (kills % 5 > 0) await worker.saysTimes(1 + Math.floor(Math.random() * 20), 'added')
    await setTimeout(Math.random() * 20)
    await worker.kill()
    if (kills % 5 > 0) {
      const account = await look()
      expectAgreement(account)
      if (account.additions > ROUNDS * account.ended) midway += 1
    }
    worker = successor
  }
  await worker.says('loaded')
  worker.tell('finish')
  expect(await worker.ended).toEqual({ code: 0, signal: null })
  const account = await look()
  console.log(`${KILLS} kills, ${midway} within runs: ${account.additions} additions, ${account.ended} runs ended`)
  expect(midway).toBeGreaterThan(KILLS / 2)
  return account
}

function expectAgreement({ sum, additions, recorded, agreeing }: Account): void {
  expect({ additions, recorded, agreeing }).toEqual({ additions: sum, recorded: sum, agreeing: sum })
}

/** `histories`: the store's tables as the database names them; `id`: the key of a run in them. */
const ACCOUNT = ({ runs, checkpoints }: { readonly runs: string; readonly checkpoints: string }): string => `
select (select n from sums) as sum,
  (select count(*) from additions) as additions,
  (select count(*) from ${checkpoints} c where c.verb = 'transaction') as recorded,
  (select count(*) from additions a join ${runs} r on r.id = a.run
   join ${checkpoints} c on c.run = r.seq and c.verb = 'transaction' and c.value = cast(a.n as text)) as agreeing,
  (select count(*) from ${runs} r where r.status = 'SUCCESS') as ended`
const TABLES = `create table sums (n integer not null);
  create table additions (run text not null, n integer not null);
  insert into sums values (0)`

it('SQLite: what is written and what is recorded are the same, whenever the process dies', async () => {
  const { store } = place()
  const database = new Sqlite(store)
  onTestFinished(() => void database.close())
  database.pragma('journal_mode = wal')
  database.exec(TABLES)
  const look = async (): Promise<Account> =>
    database.prepare<[], Account>(ACCOUNT({ runs: 'perdure_runs', checkpoints: 'perdure_checkpoints' })).get() ??
    expect.fail('no account')
  const account = await killAtRandom(['sqlite', store], look)
  expectAgreement(account)
  expect(account.additions).toBe(ROUNDS * account.ended)
}, 240_000)

it('PostgreSQL: what is written and what is recorded are the same, whenever the process dies', async () => {
  const { url, schema, destroy } = await freshSchema()
  const app = `${schema}-app`
  await sql(`create schema "${app}"`)
  onTestFinished(async () => {
    await sql(`drop schema "${app}" cascade`)
    await destroy()
  })
  const within = async (text: string): Promise<readonly object[]> => {
    const results = await sql(`begin; set local search_path = "${app}"; ${text}; commit`)
    // A text of several statements has as many answers.
    return [results].flat().at(-2)?.rows ?? []
  }
  await within(TABLES)
  const names = { runs: `"${schema}".runs`, checkpoints: `"${schema}".checkpoints` }
  const look = async (): Promise<Account> => {
    const [row] = await within(ACCOUNT(names))
    const numbers = Object.entries(row ?? {}).map(([name, value]) => [name, Number(value)])
    return { sum: 0, additions: 0, recorded: 0, agreeing: 0, ended: 0, ...Object.fromEntries(numbers) }
  }
  const withPath = new URL(url)
  withPath.searchParams.set('options', `-c search_path="${app}"`)
  const account = await killAtRandom(['postgres', withPath.href, schema], look)
  expectAgreement(account)
  expect(account.additions).toBe(ROUNDS * account.ended)
}, 240_000)
