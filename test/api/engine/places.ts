/** Where the tests of the engine keep their runs: each behaviour is tried on every store. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import { Emitter } from '../../../src/core/events.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { kitDatabaseOn } from '../../store/postgres/kit.ts'
import { serverUrl } from '../../store/postgres/server.ts'
import { TroubleStore } from './trouble-store.ts'

/** Data that outlives the engines on it. */
export interface Place {
  /** Another store object on the same data, as another process has one. */
  connect(): TroubleStore
}

export interface Kind {
  readonly kind: 'memory' | 'sqlite' | 'postgres'
  place(clock?: Clock): Place
}

/** Without PostgreSQL: for what has little to do with the store, or takes long on it. */
export const LOCAL_KINDS: readonly Kind[] = [
  {
    kind: 'memory',
    place: (clock) => {
      const data = memory(clock === undefined ? {} : { clock })
      const changes = new Emitter<TroubleStore>()
      return { connect: () => new TroubleStore(data, changes) }
    },
  },
  {
    kind: 'sqlite',
    place: (clock) => {
      const path = freshFile()
      return { connect: () => new TroubleStore(sqlite(path, clock === undefined ? {} : { clock })) }
    },
  },
]

const url = await serverUrl()

export const KINDS: readonly Kind[] = [
  ...LOCAL_KINDS,
  {
    kind: 'postgres',
    place: (clock) => {
      const database = kitDatabaseOn(url, clock)
      onTestFinished(() => database.destroy())
      return { connect: () => new TroubleStore(database.connect()) }
    },
  },
]

/** A path in a directory of its own, which goes when the test ends. */
export function freshFile(name = 'store.db'): string {
  const directory = mkdtempSync(join(tmpdir(), 'perdure-engine-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, name)
}
