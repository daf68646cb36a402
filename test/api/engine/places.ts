/** Where the tests of the engine keep their runs: each behaviour is tried on every store. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import { Emitter } from '../../../src/core/events.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { TroubleStore } from './trouble-store.ts'

/** Data that outlives the engines on it. */
export interface Place {
  /** Another store object on the same data, as another process has one. */
  connect(): TroubleStore
}

export interface Kind {
  readonly kind: 'memory' | 'sqlite'
  place(clock?: Clock): Place
}

export const KINDS: readonly Kind[] = [
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

/** A path in a directory of its own, which goes when the test ends. */
export function freshFile(name = 'store.db'): string {
  const directory = mkdtempSync(join(tmpdir(), 'perdure-engine-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, name)
}
