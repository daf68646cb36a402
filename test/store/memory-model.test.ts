import fc from 'fast-check'
import { describe, it } from 'vitest'
import { modelConformance } from '../../src/store/conformance/model.ts'
import { memory } from '../../src/store/memory/index.ts'

// Against itself, the reference shows that the model test runs, and that two of its stores share nothing.
modelConformance({
  name: 'memory',
  api: { describe, it },
  create: async (clock) => {
    const store = memory({ clock })
    return { connect: () => store, destroy: async () => {} }
  },
  fc,
})
