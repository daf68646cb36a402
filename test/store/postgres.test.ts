/** The PostgreSQL store keeps the contract: the conformance kit, in a schema of its own for each test. */
import { describe, it } from 'vitest'
import { storeConformance } from '../../src/store/conformance/index.ts'
import { kitDatabase } from './postgres/kit.ts'

storeConformance({
  name: 'postgres',
  capabilities: { durable: true, shared: true },
  api: { describe, it },
  create: kitDatabase,
})
