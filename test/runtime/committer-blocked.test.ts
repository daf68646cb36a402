import { describe, expect, test } from 'vitest'
import { StoreClosedError, StoreUnavailableError } from '../../src/core/errors.ts'
import { realRandom } from '../../src/core/random.ts'
import { Committer } from '../../src/runtime/committer/committer.ts'
import type { Command, CommitOutcome, Outcome } from '../../src/store/contract.ts'
import { checkpoint } from './commands.ts'
import { FastScheduler, until } from './fast-scheduler.ts'
import { effectsOf, ScriptedStore } from './scripted-store.ts'

const APPLIED: Outcome = {
  ...({ type: 'applied', status: 'PENDING', ending: null } as const),
  ...{ cancelRequested: false, dueAt: null, rippled: false, refusals: [] },
}

describe('blocked commands', () => {
  const blockedStore = () => {
    const batches: (readonly Command[])[] = []
    let settle: { resolve(outcome: Outcome): void; reject(error: unknown): void } | undefined
    const answer = (command: Command): CommitOutcome => {
      if (settle !== undefined || !effectsOf(command).includes('blocked')) return APPLIED
      const outcome = new Promise<Outcome>((resolve, reject) => {
        settle = { resolve, reject }
      })
      return { type: 'blocked', outcome }
    }
    const commit = async (commands: readonly Command[]) => {
      batches.push(commands)
      return commands.map(answer)
    }
    const store = Object.assign(new ScriptedStore(), { commit })
    const texts = () => batches.map((batch) => batch.flatMap(effectsOf))
    const scheduler = new FastScheduler()
    const committer = new Committer({ store, scheduler, random: realRandom, onTrouble: () => {} })
    return { committer, scheduler, texts, settle: () => settle ?? expect.fail('nothing is blocked') }
  }

  test('go on by themselves: what comes after them waits, and nothing else does', async () => {
    const { committer, texts, settle } = blockedStore()
    const blocked = committer.submit(checkpoint('a', 't', 0, 'blocked'))
    await Promise.all(['b', 'c'].map((run) => committer.submit(checkpoint(run, 't', 0, run))))
    const after = committer.submit(checkpoint('a', 't', 1, 'after'))
    await committer.submit(checkpoint('b', 't', 1, 'b again'))
    expect(texts()).toEqual([['blocked', 'b', 'c'], ['b again']])
    expect(committer.pending()).toBe(2)
    const before = committer.activity()
    settle().resolve(APPLIED)
    await committer.idle()
    expect(committer.activity()).toBeGreaterThan(before)
    expect(texts().slice(2)).toEqual([['after']])
    expect(await Promise.all([blocked, after])).toEqual([APPLIED, APPLIED])
  })

  test('are sent again when the store is in trouble', async () => {
    const { committer, texts, settle } = blockedStore()
    const blocked = committer.submit(checkpoint('a', 't', 0, 'blocked'))
    await until(() => texts().length === 1)
    settle().reject(new StoreUnavailableError({ store: 's', problem: 'gone' }))
    expect(await blocked).toEqual(APPLIED)
    expect(texts()).toEqual([['blocked'], ['blocked']])
  })

  test('are refused alone, with what was given behind them; what was merged before them is applied', async () => {
    const { committer, texts, settle } = blockedStore()
    const results = Promise.allSettled([
      committer.submit(checkpoint('a', 't', 0, 'before')),
      committer.submit(checkpoint('a', 't', 1, 'blocked')),
    ])
    await until(() => texts().length === 1)
    settle().reject(new Error('refused'))
    expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
    expect(texts()).toEqual([['before', 'blocked'], ['before'], ['blocked']])
  })

  test('are given up by a close that lasts too long', async () => {
    const { committer, scheduler, texts } = blockedStore()
    scheduler.held = true
    const blocked = committer.submit(checkpoint('a', 't', 0, 'blocked')).catch((error: unknown) => error)
    await until(() => texts().length === 1)
    const closed = committer.close(1)
    scheduler.pass(1)
    await closed
    expect(await blocked).toBeInstanceOf(StoreClosedError)
    expect(committer.pending()).toBe(0)
  })
})
