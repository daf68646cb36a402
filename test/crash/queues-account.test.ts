/** The judge is judged: each fault, planted in a journal of a few lines, is found, and what is none is not. */
import { expect, it } from 'vitest'
import type { Note } from './journal.ts'
import { accountOf, beginnings, tightestWindow } from './queue-account.ts'
import { mostAtOnce } from './queue-claims.ts'

/** `begin q.1 7`: what, of which run or step, in which process; and when, where that matters. */
function journalOf(...lines: readonly string[]): readonly Note[] {
  return lines.map((line) => {
    const [what = '', key = '', pid = '', value = ''] = line.split(' ')
    return { what, key, pid: Number(pid), value }
  })
}

function faultsOf(...lines: readonly string[]): readonly string[] {
  return accountOf(journalOf(...lines)).faults
}

const ONE = ['begin q.1 7', 'effect q.1:0 7', 'recorded q.1:0 7', 'end q.1 7', 'settled q.1 7']

it('a run that begins and ends, one after the death of its process, and one after its loss are no faults', () => {
  expect(faultsOf(...ONE)).toEqual([])
  expect(faultsOf('begin q.1 7', 'effect q.1:0 7', 'killed  7', 'begin q.1 8', 'effect q.1:0 8', 'end q.1 8')).toEqual(
    [],
  )
  expect(faultsOf('begin q.1 7', 'end q.1 7', 'killed  7', 'begin q.1 8')).toEqual([])
  expect(
    faultsOf('begin q.1 7', 'lost q.1 7', 'begin q.1 8', 'effect q.1:0 7', 'end q.1 7', 'effect q.1:0 8', 'end q.1 8'),
  ).toEqual([])
})

it.each([
  ['two living processes have a run', ['begin q.1 7', 'begin q.1 8']],
  ['a run begins again though its process lives', ['begin q.1 7', 'end q.1 7', 'begin q.1 7']],
  ['a run begins again after its settlement', [...ONE, 'killed  7', 'begin q.1 8']],
  ['a run ends in a process that does not have it', ['begin q.1 7', 'killed  7', 'begin q.1 8', 'end q.1 7']],
  ['a step is done again after its record', [...ONE.slice(0, 3), 'killed  7', 'begin q.1 8', 'effect q.1:0 8']],
  ['a step is done again though its process lives', ['begin q.1 7', 'effect q.1:0 7', 'effect q.1:0 7']],
])('%s: found', (_, lines) => {
  expect(faultsOf(...lines)).toHaveLength(1)
})

it('counts what is at work in a lane, until its last line, its loss or the death of its process', () => {
  const peak = (...lines: readonly string[]): number | undefined => accountOf(journalOf(...lines)).peaks.get('q')
  expect(peak('begin q.1 7', 'begin q.2 8')).toBe(2)
  expect(peak('begin q.1 7', 'begin p.2 8')).toBe(1)
  expect(peak('begin q.1 7', 'end q.1 7', 'begin q.2 8')).toBe(1)
  expect(peak('begin q.1 7', 'lost q.1 7', 'begin q.2 8')).toBe(1)
  expect(peak('begin q.1 7', 'killed  7', 'begin q.2 8')).toBe(1)
  expect(peak('begin q.1 7', 'killed  8', 'begin q.2 8')).toBe(2)
})

it('measures the tightest window, of the journal and of anything else', () => {
  const notes = journalOf('begin q.3 7 1250', 'begin q.1 7 1000', 'begin p.1 7 1001', 'begin q.2 7 1100')
  expect(beginnings(notes, 'q')).toEqual([1000, 1100, 1250])
  expect(tightestWindow([1000, 1100, 1250], 1)).toBe(100)
  expect(tightestWindow([1000, 1100, 1250], 2)).toBe(250)
  expect(tightestWindow([1000, 1100, 1250], 3)).toBe(Number.POSITIVE_INFINITY)
})

it('counts claims at once: one that ends when another begins made room for it', () => {
  const claims = (...spans: readonly (readonly [number, number])[]) =>
    mostAtOnce(spans.map(([from, to]) => ({ runId: 'q.1', outcome: 'succeeded', from, to })))
  expect(claims([1, 5], [5, 9])).toBe(1)
  expect(claims([1, 6], [5, 9])).toBe(2)
  expect(claims([1, Number.POSITIVE_INFINITY], [2, 3], [4, 5])).toBe(2)
})
