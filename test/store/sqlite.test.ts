/** The SQLite store keeps the contract: the conformance kit, on a file of its own for each test. */
import { rm } from 'node:fs/promises'
import { describe, it } from 'vitest'
import { storeConformance } from '../../src/store/conformance/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { emptyDirectory } from './sqlite/files.ts'

storeConformance({
  name: 'sqlite',
  capabilities: { durable: true, shared: true },
  api: { describe, it },
  create: async (clock) => {
    const directory = emptyDirectory()
    return {
      connect: () => sqlite(`${directory}/store.db`, { clock }),
      destroy: () => rm(directory, { recursive: true }),
    }
  },
})
