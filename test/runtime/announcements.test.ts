import { describe, expect, test } from 'vitest'
import { announce } from '../../src/runtime/announcements.ts'
import type { Notice } from '../../src/runtime/notices.ts'
import type { AppliedOutcome, Command, Effect, NewRun, Outcome, StartCaveat } from '../../src/store/contract.ts'
import type { RunStatus } from '../../src/store/records.ts'
import { cancel, checkpoint, enqueue, kv, newRun, perform, settle, signal, wait } from './commands.ts'

const NOW = 1_000
const APPLIED: AppliedOutcome = {
  ...{ type: 'applied', status: 'PENDING', ending: null, cancelRequested: false },
  ...{ dueAt: null, rippled: false, refusals: [] },
}
const CLAIMABLE: Notice = { type: 'claimable' }
const SIGNALLED: Notice = { type: 'signalled', runId: null }
const CHANGED: Notice = { type: 'changed' }

function noticesOf(command: Command, outcome: Outcome): readonly Notice[] {
  const notices: Notice[] = []
  announce(command, outcome, NOW, (notice) => void notices.push(notice))
  return notices
}

describe('starts', () => {
  const started = (due: NewRun['due'], status: RunStatus, created = true, caveat: StartCaveat | null = null) =>
    noticesOf(
      { type: 'enqueue', commandId: 'c', runs: [newRun('a', '1', { due })] },
      { type: 'accepted', runs: [{ id: 'a', created, status, caveat }] },
    )

  test('are claimable, due at their instant, claimed already, or there before', () => {
    expect(started(null, 'ENQUEUED')).toEqual([CLAIMABLE])
    expect(started({ type: 'after', ms: 500 }, 'DELAYED')).toEqual([{ type: 'due', dueAt: 1_500 }])
    expect(started({ type: 'at', instant: 1_200 }, 'DELAYED')).toEqual([{ type: 'due', dueAt: 1_200 }])
    expect(started({ type: 'at', instant: 900 }, 'ENQUEUED')).toEqual([CLAIMABLE])
    expect(started(null, 'PENDING')).toEqual([])
    expect(started(null, 'ENQUEUED', false)).toEqual([])
    expect(started(null, 'ENQUEUED', true, 'priorityIgnored')).toEqual([CLAIMABLE])
    expect(started(null, 'ENQUEUED', true, 'keyless'), 'never claimed').toEqual([])
  })

  test('of many at once: one notice, of the first that is due', () => {
    const delays = [500, 300, 400]
    const runs = delays.map((ms, n) => newRun(`${n}`, '1', { due: { type: 'after', ms } }))
    const accepted = [...runs, newRun('3', '1'), newRun('4', '1')]
    const outcome: Outcome = {
      type: 'accepted',
      runs: accepted.map(({ id, due }) => {
        return { id, created: true, status: due === null ? 'ENQUEUED' : 'DELAYED', caveat: null }
      }),
    }
    expect(noticesOf({ type: 'enqueue', commandId: 'c', runs: accepted }, outcome)).toEqual([
      CLAIMABLE,
      { type: 'due', dueAt: 1_300 },
    ])
    expect(noticesOf(enqueue(['a'], 't'), { type: 'mismatch', id: 'a', definition: 'e' })).toEqual([])
  })

  test('by a body are told like others', () => {
    const child = (due: NewRun['due']) =>
      noticesOf(perform('p', 't', 0, { type: 'start', run: newRun('a', '1', { due }) }), {
        ...{ type: 'performed', value: '{"id":"a","created":true}', cancelRequested: false },
      })
    expect(child(null)).toEqual([CLAIMABLE])
    expect(child({ type: 'after', ms: 500 })).toEqual([{ type: 'due', dueAt: 1_500 }])
    expect(child({ type: 'at', instant: 900 })).toEqual([CLAIMABLE])
  })
})

describe('ends of deliveries', () => {
  const settled = (differing: Partial<AppliedOutcome>) => noticesOf(settle('a', 't', '1'), { ...APPLIED, ...differing })

  test('tell of an end, or that there was one', () => {
    const ending = { status: 'SUCCESS', output: '1' } as const
    const ended: Notice = { type: 'ended', runId: 'a', ending }
    expect(settled({ status: 'SUCCESS', ending })).toEqual([ended])
    expect(settled({ status: 'SUCCESS', ending, rippled: true }), 'a parent was woken').toEqual([CLAIMABLE, ended])
    const cancelled = { status: 'CANCELLED', failure: { kind: 'cancelled', error: null } } as const
    expect(settled({ status: 'CANCELLED', ending: cancelled, rippled: true }), 'children were cancelled').toEqual([
      CHANGED,
      { type: 'ended', runId: 'a', ending: cancelled },
    ])
    expect(settled({ status: 'SUCCESS' }), 'a resend').toEqual([CHANGED])
  })

  test('tell when the run goes on', () => {
    expect(settled({ status: 'ENQUEUED' })).toEqual([CLAIMABLE])
    expect(settled({ status: 'WAITING', dueAt: 2_000 })).toEqual([{ type: 'due', dueAt: 2_000 }])
    expect(settled({ status: 'WAITING', dueAt: NOW })).toEqual([CLAIMABLE])
    expect(settled({ status: 'WAITING', dueAt: null })).toEqual([])
  })

  test('a checkpoint tells nothing but its ripples, and asks for no ends', () => {
    const stages = (effects: readonly Effect[]) =>
      noticesOf(checkpoint('a', 't', 0, '1', effects), { ...APPLIED, rippled: true })
    expect(noticesOf(checkpoint('a', 't', 0, '1'), APPLIED)).toEqual([])
    expect(stages([{ type: 'start', run: newRun('b', '1') }])).toEqual([CLAIMABLE])
    expect(stages([{ type: 'signal', key: 'k', payload: '1' }])).toEqual([SIGNALLED, CLAIMABLE])
    expect(noticesOf(checkpoint('a', 't', 0, '1'), { type: 'claimLost' })).toEqual([])
  })
})

describe('what comes from outside', () => {
  test('signals', () => {
    const delivered = (woken: boolean) => noticesOf(signal('k', 'p'), { type: 'delivered', runId: 'a', woken })
    expect(delivered(false)).toEqual([{ type: 'signalled', runId: 'a' }])
    expect(delivered(true)).toEqual([{ type: 'signalled', runId: 'a' }, CLAIMABLE])
    expect(noticesOf(signal('k', 'p'), { type: 'buffered' })).toEqual([])
    const byBody = (word: string) =>
      noticesOf(perform('p', 't', 0, { type: 'signal', key: 'k', payload: '1' }), {
        ...{ type: 'performed', value: JSON.stringify(word), cancelRequested: false },
      })
    expect(byBody('delivered'), 'to whom is not known').toEqual([SIGNALLED, CLAIMABLE])
    expect(byBody('buffered')).toEqual([])
    expect(noticesOf(wait('a', 't', 0, 'k', 'timer'), { type: 'signalled', payload: '1' })).toEqual([])
  })

  test('cancellations, requeues and values', () => {
    const ending = { status: 'CANCELLED', failure: { kind: 'cancelled', error: null } } as const
    const ended: Notice = { type: 'ended', runId: 'a', ending }
    expect(noticesOf(cancel('a', 'c'), { type: 'cancelled', rippled: false })).toEqual([ended, CLAIMABLE])
    expect(noticesOf(cancel('a', 'c'), { type: 'cancelled', rippled: true })).toEqual([ended, CHANGED])
    expect(noticesOf(cancel('a', 'c'), { type: 'requested', owner: 'o', token: 't' })).toEqual([
      { type: 'cancelRequested', token: 't' },
    ])
    expect(noticesOf(cancel('a', 'c'), { type: 'notCancelled', status: null })).toEqual([])
    expect(noticesOf({ type: 'requeue', commandId: 'c', runId: 'a' }, { type: 'requeued' })).toEqual([CLAIMABLE])
    expect(noticesOf(kv('k', 'v'), { type: 'kv', applied: true })).toEqual([])
  })
})
