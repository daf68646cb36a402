/** The PostgreSQL store does what the memory store does, whatever is asked of both. */
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { modelConformance } from '../../src/store/conformance/model.ts'
import { kitDatabase } from './postgres/kit.ts'

modelConformance({
  name: 'postgres',
  api: { describe, it },
  create: kitDatabase,
  fc,
})
