/** Several ways into one database, as of several processes: other connections, if the store is shared. */
import assert from 'node:assert/strict'
import { StoreUnavailableError } from '../../core/errors.ts'
import type { Command, OutcomeOf, Store } from '../contract.ts'
import type { World } from './world.ts'

export const HANDLES = 4

/** Several open stores over one database: different ones, if the store is shared. */
export async function handles(world: World): Promise<readonly Store[]> {
  const stores = [world.store, ...Array.from({ length: HANDLES - 1 }, () => world.connect())]
  await Promise.all(stores.map((store) => store.open()))
  return stores
}

export function at(stores: readonly Store[], n: number): Store {
  const store = stores[n % stores.length]
  assert.ok(store !== undefined)
  return store
}

/** Commits one command. */
export function one<C extends Command>(world: World, store: Store, command: C): Promise<OutcomeOf<C>> {
  return patiently(() => world.commit(command, store))
}

/** A store that is busy says so and is asked again, as the runtime does; resends recognise themselves. */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!StoreUnavailableError.is(error)) throw error
    }
  }
}
