/** Databases for what the documents show: each is a new one, as a reader has, on the server of the tests. */
import { onTestFinished } from 'vitest'
import { postgres } from '../../src/store/postgres/index.ts'
import { run, serverUrl } from '../store/postgres/server.ts'

let databases = 0

/** The URL of a database with nothing in it, which goes when the test ends. */
export async function freshDatabase(): Promise<string> {
  databases += 1
  const name = `docs_${process.pid}_${databases}`
  await run(`create database ${name}`)
  onTestFinished(async () => {
    await run(`drop database ${name} with (force)`)
  })
  const url = new URL(await serverUrl())
  url.pathname = name
  return url.href
}

/** The same with the tables of the store in it. */
export async function migratedDatabase(): Promise<string> {
  const url = await freshDatabase()
  await postgres(url).migrate()
  return url
}
