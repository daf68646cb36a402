import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { realClock } from '../../src/core/clock.ts'
import { StoreClosedError } from '../../src/core/errors.ts'
import { modelConformance } from '../../src/store/conformance/model.ts'
import { LEASE_MS, newClaim, newRun, outcome } from '../../src/store/conformance/world.ts'
import type { Store } from '../../src/store/contract.ts'
import { memory } from '../../src/store/memory/index.ts'
import { OrderedIndex } from '../../src/store/memory/ordered-index.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'

const REQUEST = { owner: 'w', leaseMs: LEASE_MS, definitions: ['charge'] }

describe('memory()', () => {
  it('lives on the host’s clock unless it is given one, until it is opened', async () => {
    const clock = new MockClock()
    const store = memory()
    expect(store.clock).toBe(realClock)
    store.setClock(clock)
    expect(store.clock).toBe(clock)
    await store.open()
    await store.commit([{ type: 'enqueue', commandId: 'c', runs: [newRun('a')] }])
    expect((await store.runs(['a']))[0]?.createdAt).toBe(clock.now())
  })

  it('must be opened first', async () => {
    await expect(memory().runs(['a'])).rejects.toThrow(StoreClosedError)
  })

  it('is shared by several engines: one that closes it leaves the others working', async () => {
    const store = memory()
    await store.open()
    await store.open()
    await store.close()
    await store.commit([{ type: 'enqueue', commandId: 'c', runs: [newRun('a')] }])
    expect((await store.runs(['a']))[0]?.status).toBe('ENQUEUED')
  })

  it('gives out frozen rows', async () => {
    const store = memory()
    await store.open()
    await store.commit([{ type: 'enqueue', commandId: 'c', runs: [newRun('a', { claim: newClaim('t') })] }])
    await store.commit([{ type: 'checkpoint', runId: 'a', token: 't', entries: [outcome(0)] }])
    const [run] = await store.runs(['a'])
    const [entry] = (await store.histories(['a'])).get('a') ?? []
    expect([run, entry].map((record) => Object.isFrozen(record))).toEqual([true, true])
  })

  it('refuses a history with gaps', async () => {
    const store = memory()
    await store.open()
    await store.commit([{ type: 'enqueue', commandId: 'c', runs: [newRun('a', { claim: newClaim('t') })] }])
    const gap = store.commit([{ type: 'checkpoint', runId: 'a', token: 't', entries: [outcome(0), outcome(2)] }])
    await expect(gap).rejects.toThrow(/gap/)
    expect((await store.histories(['a'])).get('a')).toEqual([])
  })

  it('costs a claim no more with a hundred thousand runs than with a thousand', async () => {
    const few = await quickestRound(await filled(1_000))
    const many = await quickestRound(await filled(100_000))
    // One scan over all runs for each claim would be tens of milliseconds a round.
    expect(many).toBeLessThan(few * 20 + 5)
  })
})

/** Half of the runs are for us, half for someone else. */
async function filled(runs: number): Promise<Store> {
  const store = memory()
  await store.open()
  const newRuns = Array.from({ length: runs }, (_, n) =>
    newRun(`run ${n}`, { definition: n % 2 === 0 ? 'charge' : 'other' }),
  )
  await store.commit([{ type: 'enqueue', commandId: 'c', runs: newRuns }])
  return store
}

/** The quickest of several rounds: what the machine does meanwhile makes a round slower, never quicker. */
async function quickestRound(store: Store): Promise<number> {
  const rounds: number[] = []
  for (let round = 0; round < 10; round++) {
    const begun = performance.now()
    for (let n = 0; n < 40; n++) {
      await store.claim({ ...REQUEST, tokens: [`token ${round} ${n}`] })
      await store.nextDue(['charge', 'other'])
      await store.nextExpiry()
      await store.cancelRequests('w')
    }
    rounds.push(performance.now() - begun)
  }
  return Math.min(...rounds)
}

describe('the ordered index', () => {
  it('always knows its first, and finds all up to a rank, after any changes', () => {
    const change = fc.record({ id: fc.nat(20), rank: fc.option(fc.nat(10)), upTo: fc.nat(10) })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
        const index = new OrderedIndex()
        const model = new Map<number, number>()
        for (const { id, rank, upTo } of changes) {
          if (rank === null) {
            index.delete(`${id}`)
            model.delete(id)
          } else {
            index.set(`${id}`, rank, id)
            model.set(id, rank)
          }
          const sorted = [...model].toSorted(([a, x], [b, y]) => x - y || a - b)
          expect(index.size).toBe(model.size)
          expect(index.first()?.id).toBe(sorted[0] === undefined ? undefined : `${sorted[0][0]}`)
          const within = sorted.filter(([, ranked]) => ranked <= upTo).map(([found]) => `${found}`)
          expect(index.upTo(upTo, 100).toSorted()).toEqual(within.toSorted())
          expect(index.upTo(upTo, 2)).toHaveLength(Math.min(2, within.length))
        }
      }),
    )
  })
})

describe('the model test', () => {
  const faults: Readonly<Record<string, (store: Store) => Partial<Store>>> = {
    'forgets endings': () => ({ endings: async () => new Map() }),
    'claims one less': (store) => ({
      claim: (request) => store.claim({ ...request, tokens: request.tokens.slice(1) }),
    }),
    'reclaims nothing of the dead': (store) => ({
      reclaim: (request) => store.reclaim({ ...request, deadOwners: [] }),
    }),
    'fences nothing at a release': (store) => ({
      commit: async (commands) => {
        const unfenced = commands.map(async (command) => {
          if (command.type !== 'settle' || command.settlement.type !== 'release') return command
          return { ...command, token: (await store.runs([command.runId]))[0]?.token ?? command.token }
        })
        return store.commit(await Promise.all(unfenced))
      },
    }),
  }

  it.each(Object.keys(faults))('finds a store that %s', async (fault) => {
    const tests: (() => Promise<void>)[] = []
    modelConformance({
      name: fault,
      api: { describe: () => {}, it: (_, body) => tests.push(body) },
      create: async (clock) => {
        const store = memory({ clock })
        return { connect: () => faulty(store, faults[fault]?.(store) ?? {}), destroy: async () => {} }
      },
      fc,
      shrink: false,
    })
    expect(tests).toHaveLength(1)
    await expect(tests[0]?.()).rejects.toThrow(/Property failed/)
  })
})

function faulty(store: Store, overrides: Partial<Store>): Store {
  return new Proxy(store, {
    get: (target, key) => {
      const value: unknown = Reflect.get({ ...overrides }, key) ?? Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
