/** The SQLite store does what the memory store does, whatever is asked of both. */
import { rm } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { modelConformance } from '../../src/store/conformance/model.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { emptyDirectory } from './sqlite/files.ts'

modelConformance({
  name: 'sqlite',
  api: { describe, it },
  create: async (clock) => {
    const directory = emptyDirectory()
    return {
      connect: () => sqlite(`${directory}/store.db`, { clock }),
      destroy: () => rm(directory, { recursive: true }),
    }
  },
  fc,
})
