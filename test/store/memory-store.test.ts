import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { realClock } from '../../src/core/clock.ts'
import { StoreClosedError } from '../../src/core/errors.ts'
import { newClaim, newRun, outcome } from '../../src/store/conformance/makers.ts'
import { modelConformance } from '../../src/store/conformance/model.ts'
import type { Command, Store } from '../../src/store/contract.ts'
import { Acceptance } from '../../src/store/memory/acceptance.ts'
import { memory } from '../../src/store/memory/index.ts'
import { Ledger } from '../../src/store/memory/ledger.ts'
import { OrderedIndex } from '../../src/store/memory/ordered-index.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'

const HELD = { runId: 'a', token: 't' } as const
const POISON = newRun('poison', { maxRecoveries: Number.NaN })

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

  it.each<readonly [string, Command]>([
    [
      'an effect',
      { ...HELD, type: 'checkpoint', entries: [outcome(0, { effects: [{ type: 'start', run: POISON }] })] },
    ],
    [
      'an action',
      { ...HELD, type: 'perform', entry: outcome(0, { value: null }), action: { type: 'start', run: POISON } },
    ],
  ])('applies nothing of a batch with a start that can’t be stored, be it %s', async (_, poison) => {
    const store = memory()
    await store.open()
    await store.commit([{ type: 'enqueue', commandId: 'c', runs: [newRun('a', { claim: newClaim('t') })] }])
    const before: Command = { type: 'enqueue', commandId: 'd', runs: [newRun('b')] }
    await expect(store.commit([before, poison])).rejects.toThrow(/maxRecoveries/)
    expect(await store.runs(['b', 'poison'])).toEqual([undefined, undefined])
    expect((await store.histories(['a'])).get('a')).toEqual([])
  })

  it('answers a run that is named twice, and stands back for another, with that other both times', async () => {
    const store = memory()
    await store.open()
    const dedup = { id: 'order', policy: 'returnExisting' } as const
    const runs = ['a', 'b', 'b'].map((id) => newRun(id, { queue: 'media', dedup }))
    await store.commit([{ type: 'enqueue', commandId: 'c', runs: runs.slice(0, 1) }])
    const [answer] = await store.commit([{ type: 'enqueue', commandId: 'd', runs: runs.slice(1) }])
    expect(answer).toMatchObject({ runs: [{ id: 'a' }, { id: 'a' }] })
    expect(await store.runs(['b'])).toEqual([undefined])
  })

  it('recognises a resend for exactly a day, and longer only if nothing sweeps', async () => {
    const clock = new MockClock()
    const store = memory({ clock })
    await store.open()
    const send: Command = { type: 'signal', commandId: 'c', key: 'k', payload: '1' }
    const later = async (ms: number): Promise<unknown> => {
      await clock.advance(ms)
      await store.sweep({ definitions: [], limit: 1 })
      return (await store.commit([send]))[0]
    }
    expect((await store.commit([send]))[0]).toEqual({ type: 'buffered' })
    expect(await later(24 * 3_600_000)).toEqual({ type: 'buffered' })
    expect(await later(1)).toEqual({ type: 'replaced' })
  })

  it('refuses a history with gaps', async () => {
    const store = memory()
    await store.open()
    await store.commit([{ type: 'enqueue', commandId: 'c', runs: [newRun('a', { claim: newClaim('t') })] }])
    const gap = store.commit([{ type: 'checkpoint', runId: 'a', token: 't', entries: [outcome(0), outcome(2)] }])
    await expect(gap).rejects.toThrow(/gap/)
    expect((await store.histories(['a'])).get('a')).toEqual([])
  })
})

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

describe('the order of acceptance', () => {
  it('is kept when runs are removed, and no place is given twice', () => {
    const change = fc.oneof(fc.constant('add' as const), fc.nat(30))
    fc.assert(
      fc.property(fc.array(change, { maxLength: 100 }), fc.nat(40), (changes, before) => {
        const acceptance = new Acceptance()
        const model = new Map<number, string>()
        let last = 0
        for (const one of changes) {
          if (one !== 'add') {
            acceptance.remove(one)
            model.delete(one)
            continue
          }
          last += 1
          expect(acceptance.nextSeq()).toBe(last)
          acceptance.add(last, `run ${last}`)
          model.set(last, `run ${last}`)
        }
        const newest = [...model].toReversed()
        expect([...acceptance.newest()]).toEqual(newest.map(([, id]) => id))
        const older = newest.filter(([seq]) => seq < before)
        expect([...acceptance.newest(before)]).toEqual(older.map(([, id]) => id))
      }),
    )
  })
})

describe('the ledger of starts', () => {
  const room = (ledger: Ledger, limit: number, periodMs: number, now: number): number =>
    ledger.room('media', '', { limit, periodMs }, now).room

  it('keeps the newest up to the limit, also those that are past the period: a longer one counts them', () => {
    const ledger = new Ledger()
    for (const now of [0, 1, 20]) ledger.record('media', '', { limit: 2, periodMs: 10 }, now)
    expect(room(ledger, 2, 100, 20)).toBe(0)
    expect(room(ledger, 3, 100, 20)).toBe(1)
  })

  it('keeps all that are younger than the period, also those beyond the limit: a higher one counts them', () => {
    const ledger = new Ledger()
    for (const now of [0, 1, 2]) ledger.record('media', '', { limit: 3, periodMs: 10 }, now)
    ledger.record('media', '', { limit: 1, periodMs: 10 }, 3)
    expect(room(ledger, 4, 10, 9)).toBe(0)
    expect(room(ledger, 5, 10, 9)).toBe(1)
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
    'gives more than there is room for': (store) => ({
      claim: (request) => {
        const sources = request.sources.map((source) => ({ ...source, room: source.room + 1, lanes: null }))
        return store.claim({ ...request, sources })
      },
    }),
    'heeds no version': (store) => ({ claim: (request) => store.claim({ ...request, version: null }) }),
    'forgets signals': () => ({ signals: async () => new Map() }),
    'keeps all runs for ever': () => ({ sweep: async () => ({ removed: 0, nextAt: null }) }),
    'changes no queue': (store) => ({ changeQueue: (name) => store.changeQueue(name, {}) }),
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
      sequences: 2_000,
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
