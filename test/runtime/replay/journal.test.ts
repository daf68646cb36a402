/** Entries are numbered without gaps, and tell what they have to tell once, whatever commands come to nothing. */
import { expect, it } from 'vitest'
import { Call } from '../../../src/runtime/replay/call.ts'
import { EMPTY_HISTORY } from '../../../src/runtime/replay/history.ts'
import { Journal } from '../../../src/runtime/replay/journal.ts'
import type { Port } from '../../../src/runtime/replay/port.ts'
import type { NewCheckpoint, NewRun, PerformOutcome, WaitOutcome } from '../../../src/store/commands.ts'
import { door } from '../../api/engine/support.ts'
import { Recorder } from './recorder.ts'
import { starter } from './rehearsal.ts'

function callAt(position: number): Call {
  const call = new Call({ verb: 'step', name: `at ${position}`, begin: () => {}, method: () => {} }, 100 + position)
  call.position = position
  return call
}

const EXISTS: PerformOutcome = {
  type: 'refused',
  refusal: { type: 'mismatch', id: 'child', definition: 'another' },
}
const TAKEN: WaitOutcome = { type: 'taken', holder: 'another' }

function newRun(): Promise<NewRun> {
  return starter.prepare({ target: 'child', input: 1, options: undefined }, { id: 'child', parentId: 'run' })
}

/** A journal over a store that has the answers to tentative commands wait. */
function journalOver(made: readonly number[]) {
  const answer = door()
  const stored: NewCheckpoint[] = []
  const tentative: NewCheckpoint[] = []
  const recorder = new Recorder([], async () => {})
  const port: Port = Object.assign(Object.create(recorder), {
    store: async (entries: readonly NewCheckpoint[]) => {
      stored.push(...entries)
      return true
    },
    perform: async (entry: NewCheckpoint) => {
      tentative.push(entry)
      await answer.opened
      return EXISTS
    },
    wait: async (_: number, __: string, entries: readonly NewCheckpoint[]) => {
      tentative.push(...entries)
      await answer.opened
      return TAKEN
    },
  })
  return { journal: new Journal(EMPTY_HISTORY, made, port), answer, stored, tentative }
}

it.each(['perform', 'wait'] as const)('the entry after a %s that recorded nothing has its place', async (command) => {
  const made: number[] = []
  const { journal, answer, stored, tentative } = journalOver(made)
  made.push(100, 101)
  // Two events are recorded before the first has happened, which brings another call: the second has its count to tell.
  await journal.outcome(callAt(0), { failed: false, value: '0' })
  await journal.outcome(callAt(1), { failed: false, value: '1' })
  journal.happens()
  made.push(102)
  journal.happens()
  const run = await newRun()
  const asked =
    command === 'perform' ? journal.perform(callAt(2), { type: 'start', run }) : journal.wait(callAt(2), 'key', 5)
  expect(journal.held).toBe(true)
  const recorded: string[] = []
  journal.whenFree(() => {
    recorded.push('first')
    void journal.outcome(callAt(2), { failed: true, value: '2' })
  })
  journal.whenFree(() => recorded.push('second'))
  expect([recorded, stored.length]).toEqual([[], 2])
  answer.open()
  await asked
  expect([journal.held, recorded]).toEqual([false, ['first', 'second']])
  const [refused] = tentative
  const [, , next] = stored
  expect(refused).toMatchObject({ seq: 2, position: 2 })
  expect(refused?.notes).toBe(JSON.stringify({ counts: [[1, 3]], lineages: [102] }))
  expect(next).toMatchObject({ seq: 2, position: 2, failed: true, notes: refused?.notes, delivered: 2, calls: 3 })
})

it('an event that the store has refused never happens', async () => {
  const made = [100]
  const { journal, answer } = journalOver(made)
  const asked = journal.perform(callAt(0), { type: 'start', run: await newRun() })
  expect([journal.idle, journal.head]).toEqual([false, undefined])
  answer.open()
  await asked
  expect([journal.idle, journal.head]).toEqual([true, undefined])
})
