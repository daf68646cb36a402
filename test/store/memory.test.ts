import { describe, it } from 'vitest'
import { storeConformance } from '../../src/store/conformance/index.ts'
import { memory } from '../../src/store/memory/index.ts'

storeConformance({
  name: 'memory',
  capabilities: { durable: false, shared: false },
  api: { describe, it },
  create: async (clock) => {
    const store = memory({ clock })
    return { connect: () => store, destroy: async () => {} }
  },
})
