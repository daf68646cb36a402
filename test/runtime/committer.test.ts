import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { StoreClosedError, StoreCorruptError, StoreUnavailableError } from '../../src/core/errors.ts'
import { realRandom } from '../../src/core/random.ts'
import { Committer, type Trouble, type WritableStore } from '../../src/runtime/committer/committer.ts'
import type { ClaimRequest } from '../../src/store/contract.ts'
import { cancel, checkpoint, enqueue, settle } from './commands.ts'
import { FastScheduler, turns, until } from './fast-scheduler.ts'
import { effectsOf, REFUSED, ScriptedStore } from './scripted-store.ts'

function committerOn(store: WritableStore, scheduler = new FastScheduler()) {
  const troubles: Trouble[] = []
  const onTrouble = (trouble: Trouble): void => void troubles.push(trouble)
  const committer = new Committer({ store, scheduler, random: realRandom, onTrouble })
  return { committer, scheduler, troubles }
}

const sizes = (store: ScriptedStore): readonly number[] => store.batches.map((batch) => batch.length)
const unavailable = (): StoreUnavailableError => new StoreUnavailableError({ store: 's', problem: 'gone' })
const claimRequest = (owner: string): ClaimRequest => ({
  ...{ owner, tokens: ['t'], definitions: [], version: null, sources: [] },
})
const never = (): Promise<never> => new Promise(() => {})

describe('batches', () => {
  test('callers of one turn share a commit', async () => {
    const store = new ScriptedStore()
    const { committer } = committerOn(store)
    await Promise.all([1, 2, 3].map((n) => committer.submit(cancel(`run-${n}`, `c${n}`))))
    expect(sizes(store)).toEqual([3])
  })

  test('those who were just answered can join the next batch with those who waited', async () => {
    const store = new ScriptedStore([{ delayTurns: 3, kind: 'ok' }])
    const { committer } = committerOn(store)
    const first = committer.submit(cancel('a', 'c1')).then(() => committer.submit(cancel('a', 'c2')))
    await turns(2)
    await Promise.all([first, committer.submit(cancel('b', 'c3'))])
    expect(sizes(store)).toEqual([1, 2])
  })

  test('hold at most 1,000 commands', async () => {
    const store = new ScriptedStore()
    const { committer } = committerOn(store)
    await Promise.all(Array.from({ length: 2_500 }, (_, n) => committer.submit(cancel(`run-${n}`, `c${n}`))))
    expect(sizes(store)).toEqual([1_000, 1_000, 500])
  })

  test('count the runs that a command accepts', async () => {
    const store = new ScriptedStore()
    const { committer } = committerOn(store)
    const many = (name: string) =>
      enqueue(
        Array.from({ length: 600 }, (_, n) => `${name}-${n}`),
        name,
      )
    await Promise.all([committer.submit(many('a')), committer.submit(many('b'))])
    expect(sizes(store)).toEqual([1, 1])
  })

  test('hold at most 4 MiB of text, but for a single command that is larger', async () => {
    const store = new ScriptedStore()
    const { committer } = committerOn(store)
    const text = (n: number, mib: number): string => `${n}`.padEnd(mib * 1024 * 1024, 'x')
    const inputs = [text(1, 3), text(2, 3), text(3, 5), text(4, 1)]
    await Promise.all(inputs.map((input, n) => committer.submit(settle(`run-${n}`, 't', input))))
    expect(sizes(store)).toEqual([1, 1, 1, 1])
  })

  test('100,000 commands behind one run don’t hinder the others', async () => {
    const store = new ScriptedStore([{ delayTurns: 1, kind: 'ok' }])
    const { committer } = committerOn(store)
    const blocked = Array.from({ length: 100_000 }, (_, n) => committer.submit(cancel('same', `c${n}`)))
    for (const each of blocked) each.catch(() => {})
    await committer.submit(cancel('other', 'c-other'))
    expect(store.batches.length).toBe(1)
    expect(committer.pending()).toBe(99_999)
  })

  test('what the store did not try goes first into the next', async () => {
    const store = new ScriptedStore([{ delayTurns: 2, kind: 'prefix' }])
    const { committer } = committerOn(store)
    const first = ['a', 'b', 'c', 'd'].map((run) => committer.submit(cancel(run, run)))
    await turns(2)
    await Promise.all([...first, committer.submit(cancel('e', 'e'))])
    expect(store.batches.map((batch) => batch.flatMap(effectsOf))).toEqual([
      ['a', 'b', 'c', 'd'],
      ['c', 'd', 'e'],
    ])
  })
})

describe('merging', () => {
  test('checkpoints of a run and its settlement are one command, and each caller has its answer', async () => {
    const store = new ScriptedStore()
    const { committer } = committerOn(store)
    const outcomes = await Promise.all([
      committer.submit(checkpoint('a', 't', 0, 'one')),
      committer.submit(checkpoint('a', 't', 1, 'two')),
      committer.submit(settle('a', 't', 'end')),
    ])
    expect(store.batches.map((batch) => batch.map(effectsOf))).toEqual([[['one', 'two', 'end']]])
    expect(outcomes.map((outcome) => outcome.type === 'applied' && outcome.ending)).toEqual([
      null,
      null,
      { status: 'SUCCESS', output: 'end' },
    ])
  })

  test('not beyond the bound of a batch', async () => {
    const store = new ScriptedStore()
    const { committer } = committerOn(store)
    const text = (n: number): string => `${n}`.padEnd(3 * 1024 * 1024, 'x')
    await Promise.all([0, 1].map((n) => committer.submit(checkpoint('a', 't', n, text(n)))))
    expect(sizes(store)).toEqual([1, 1])
  })

  test('across another command of the run nothing is merged', async () => {
    const store = new ScriptedStore()
    const { committer } = committerOn(store)
    await Promise.all([
      committer.submit(checkpoint('a', 't', 0, 'one')),
      committer.submit(cancel('a', 'asked')),
      committer.submit(checkpoint('a', 't', 1, 'two')),
    ])
    expect(store.applied).toEqual(['one', 'asked', 'two'])
  })
})

describe('refusals', () => {
  test('a refused command fails alone, the others are applied in order', async () => {
    const store = new ScriptedStore()
    const { committer } = committerOn(store)
    const names = ['a', 'b', 'c', `d${REFUSED}`, 'e', 'f', 'g', 'h']
    const results = await Promise.allSettled(names.map((name) => committer.submit(cancel(name, name))))
    expect(results.map(({ status }) => status === 'rejected')).toEqual(names.map((name) => name.includes(REFUSED)))
    expect(results[3]).toMatchObject({ reason: { message: `refused d${REFUSED}` } })
    expect(store.applied).toEqual(['a', 'b', 'c', 'e', 'f', 'g', 'h'])
  })

  test('of merged commands those before the one at fault are applied, and none behind it', async () => {
    const store = new ScriptedStore([{ delayTurns: 2, kind: 'ok' }])
    const { committer } = committerOn(store)
    const submitted = [
      committer.submit(checkpoint('a', 't', 0, 'one')),
      committer.submit(checkpoint('a', 't', 1, `two${REFUSED}`)),
      committer.submit(checkpoint('a', 't', 2, 'three')),
    ]
    const results = Promise.allSettled(submitted)
    await turns(2)
    const behind = [committer.submit(cancel('a', 'asked')), committer.submit(settle('a', 't', 'end'))]
    const all = [...(await results), ...(await Promise.allSettled(behind))]
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled', 'rejected'])
    expect(store.applied).toEqual(['one', 'asked'])
    await committer.submit(settle('a', 't', 'what the caller made of it'))
    expect(store.applied.at(-1)).toBe('what the caller made of it')
  })

  test('an error of the whole store is not searched for', async () => {
    let calls = 0
    const store = Object.assign(new ScriptedStore(), {
      commit: async () => {
        calls += 1
        throw new StoreCorruptError({ store: 's', problem: 'torn page' })
      },
    })
    const { committer } = committerOn(store)
    const submitted = Array.from({ length: 100 }, (_, n) => committer.submit(cancel(`run-${n}`, `c${n}`)))
    for (const result of await Promise.allSettled(submitted)) {
      expect(result).toMatchObject({ reason: { code: 'STORE_CORRUPT' } })
    }
    expect(calls).toBe(1)
  })

  test('a store that throws at once is a store that rejects', async () => {
    const store = Object.assign(new ScriptedStore(), {
      commit: () => {
        throw new Error('at once')
      },
    })
    await expect(committerOn(store).committer.submit(cancel('a', 'c'))).rejects.toThrow('at once')
  })
})

describe('trouble', () => {
  test('is waited out, told of at first, once a period, and when it is over', async () => {
    let failures = 100
    const store = Object.assign(new ScriptedStore(), {
      renew: async () => {
        if (failures-- > 0) throw unavailable()
        return { lost: [], cancelRequested: [] }
      },
    })
    const { committer, scheduler, troubles } = committerOn(store)
    await committer.renew([], 30_000)
    expect(troubles.map(({ lane, phase }) => `${lane} ${phase}`)).toEqual([
      'lease begun',
      ...Array.from({ length: Math.floor(scheduler.monotonic() / 31_000) }, () => 'lease lasting'),
      'lease over',
    ])
    expect(troubles.length).toBeGreaterThan(3)
    expect(scheduler.delays[0]).toBeLessThanOrEqual(10)
    expect(Math.max(...scheduler.delays)).toBeLessThanOrEqual(1_000)
    expect(scheduler.delays.at(-1)).toBeGreaterThanOrEqual(500)
  })

  test('of one lane leaves the others alone', async () => {
    const store = Object.assign(new ScriptedStore(), { claim: never, reclaim: never })
    const { committer } = committerOn(store)
    committer.claim(claimRequest('o')).catch(() => {})
    await committer.submit(cancel('a', 'c'))
    await committer.renew([], 30_000)
    expect(committer.pending()).toBe(1)
  })

  test('a listener that throws breaks nothing', async () => {
    const store = new ScriptedStore([{ delayTurns: 0, kind: 'unavailable' }])
    const onTrouble = (): void => {
      throw new Error('listener')
    }
    const committer = new Committer({ store, scheduler: new FastScheduler(), random: realRandom, onTrouble })
    await committer.submit(cancel('a', 'c'))
  })
})

describe('lanes', () => {
  test('have one call in flight, in order', async () => {
    const seen: string[] = []
    let inFlight = 0
    const store = Object.assign(new ScriptedStore(), {
      claim: async ({ owner }: { readonly owner: string }) => {
        seen.push(owner)
        expect(++inFlight).toBe(1)
        await turns(2)
        inFlight -= 1
        return { runs: [], nextAt: null }
      },
    })
    const { committer } = committerOn(store)
    await Promise.all(['a', 'b', 'c'].map((owner) => committer.claim(claimRequest(owner))))
    expect(seen).toEqual(['a', 'b', 'c'])
  })

  test('queues, sweeps and claims share one, and are sent again until they are answered', async () => {
    const seen: string[] = []
    let failures = 3
    const call = <T>(name: string, answer: T) => {
      return async (): Promise<T> => {
        seen.push(name)
        if (failures-- > 0) throw unavailable()
        return answer
      }
    }
    const store = Object.assign(new ScriptedStore(), {
      registerQueues: call('register', []),
      changeQueue: call('change', undefined),
      sweep: call('sweep', { removed: 1, nextAt: null }),
      claim: call('claim', { runs: [], nextAt: null }),
    })
    const { committer } = committerOn(store)
    const answers = await Promise.all([
      committer.registerQueues([]),
      committer.changeQueue('q', { paused: true }),
      committer.sweep({ definitions: [], limit: 1 }),
      committer.claim(claimRequest('o')),
    ])
    expect(seen).toEqual(['register', 'register', 'register', 'register', 'change', 'sweep', 'claim'])
    expect(answers).toEqual([[], undefined, { removed: 1, nextAt: null }, { runs: [], nextAt: null }])
  })

  test('keep no caller’s async context', async () => {
    const context = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    class Watching extends ScriptedStore {
      override async commit(commands: Parameters<ScriptedStore['commit']>[0]) {
        seen.push(context.getStore())
        return await super.commit(commands)
      }
    }
    const { committer } = committerOn(new Watching())
    await context.run('caller', async () => {
      await committer.submit(cancel('a', 'c1'))
      await committer.submit(cancel('a', 'c2'))
      expect(context.getStore()).toBe('caller')
    })
    expect(seen).toEqual([undefined, undefined])
  })
})

describe('idle and close', () => {
  test('activity grows, and idle resolves when nothing is pending', async () => {
    const { committer } = committerOn(new ScriptedStore())
    await committer.idle()
    const before = committer.activity()
    const submitted = committer.submit(cancel('a', 'c'))
    expect(committer.pending()).toBe(1)
    await committer.idle()
    expect(committer.pending()).toBe(0)
    expect(committer.activity()).toBeGreaterThan(before)
    await submitted
  })

  test('close lets what was accepted finish and refuses the rest', async () => {
    const store = new ScriptedStore([{ delayTurns: 3, kind: 'unavailable' }])
    const { committer, scheduler } = committerOn(store)
    const accepted = committer.submit(cancel('a', 'c1'))
    scheduler.held = true
    const closed = committer.close()
    await expect(committer.submit(cancel('a', 'c2'))).rejects.toThrow(StoreClosedError)
    await expect(committer.renew([], 1)).rejects.toThrow(StoreClosedError)
    await until(() => scheduler.delays.length === 2)
    scheduler.pass(20)
    await closed
    await accepted
    expect(scheduler.armed, 'no timer left').toBe(0)
  })

  test('close gives up what the store never answers, with the trouble as cause', async () => {
    const store = Object.assign(new ScriptedStore(), {
      commit: never,
      claim: never,
      renew: async () => {
        throw unavailable()
      },
    })
    const { committer, scheduler, troubles } = committerOn(store)
    scheduler.held = true
    const results = Promise.allSettled([
      committer.submit(cancel('a', 'c1')),
      committer.submit(cancel('a', 'c2')),
      committer.claim(claimRequest('o')),
      committer.reclaim({ deadOwners: [], limit: 1 }),
      committer.renew([], 1),
    ])
    await until(() => troubles.length === 1)
    const closed = committer.close(1)
    expect(committer.close()).toBe(closed)
    scheduler.pass(1)
    await closed
    for (const result of await results) expect(result).toMatchObject({ reason: { code: 'STORE_CLOSED' } })
    expect((await results)[4]).toMatchObject({ reason: { cause: { code: 'STORE_UNAVAILABLE' } } })
    expect(scheduler.armed, 'no timer left').toBe(0)
    expect(committer.pending()).toBe(0)
  })
})
