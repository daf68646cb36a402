/** Deduplication ids between processes: one holder at a time, and none when its run has ended. */
import { expect, it } from 'vitest'
import { refusal } from '../api/engine/support.ts'
import type { Child } from './processes.ts'
import { accountOf } from './queue-account.ts'
import { startProgram } from './queue-children.ts'
import { type QueuePlace, queuePlace } from './queue-place.ts'

const PROCESSES = 3
const CALLERS_EACH = 4
const ROUNDS = 20
const CHAINED = 50

async function callers({ store }: QueuePlace): Promise<readonly Child[]> {
  const started = Array.from({ length: PROCESSES }, (_, n) =>
    startProgram('caller', store, `p${n}`, String(CALLERS_EACH)),
  )
  await Promise.all(started.map((caller) => caller.says('loaded')))
  return started
}

/** What every caller of a round was told, by the word it begins with. */
async function answersOf(racers: readonly Child[], dedupId: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const told = await Promise.all(racers.map((racer) => racer.saysTimes(CALLERS_EACH, `raced ${dedupId} `)))
  const answers = new Map<string, string[]>()
  for (const line of told.flat()) {
    const [, , word = '', id = ''] = line.split(' ')
    answers.set(word, [...(answers.get(word) ?? []), id])
  }
  return answers
}

it(`12 callers in 3 processes want one deduplication id: one is admitted, in each of ${ROUNDS} rounds (Q29, C-17)`, async () => {
  const here = queuePlace()
  const racers = await callers(here)
  // Nothing runs yet: whoever is admitted stays the holder.
  const holders: string[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const rejects = round % 2 === 0
    // Another is told first in each.
    const first = round % PROCESSES
    for (const racer of [...racers.slice(first), ...racers.slice(0, first)]) {
      racer.tell(`race d${round} ${rejects ? 'reject' : 'returnExisting'}`)
    }
    const answers = await answersOf(racers, `d${round}`)
    const [holder = '', ...more] = answers.get('admitted') ?? []
    holders.push(holder)
    expect(more).toEqual([])
    const others = Array.from({ length: PROCESSES * CALLERS_EACH - 1 }, () => holder)
    expect(Object.fromEntries(answers)).toEqual({ admitted: [holder], [rejects ? 'refused' : 'existing']: others })
  }
  // Several processes have won.
  expect(new Set(holders.map((id) => id.slice(id.indexOf('.'), id.lastIndexOf('-')))).size).toBeGreaterThan(1)
  expect((await here.client.runs.list({ queue: 'unique' })).runs).toHaveLength(ROUNDS)

  await here.worker({ queues: { unique: {} } })
  await here.drained(['unique'])
  const { faults, begins } = accountOf(here.journal.read())
  expect(faults).toEqual([])
  expect([...begins.keys()].sort()).toEqual(holders.sort())
})

it('an id is free as soon as the result of its holder is known, in any process (Q30)', async () => {
  const here = queuePlace()
  const chains = await callers(here)
  await here.worker({ queues: { unique: {} } })
  for (const [n, chain] of chains.entries()) chain.tell(`chain c${n} ${CHAINED}`)
  for (const [n, chain] of chains.entries()) expect(await chain.says('chained')).toBe(`chained c${n} ${CHAINED}`)
  const { faults, begins, peaks } = accountOf(here.journal.read())
  expect(faults).toEqual([])
  expect(begins.size).toBe(PROCESSES * CHAINED)
  expect(Object.fromEntries(peaks)).toEqual({ 'unique/c0': 1, 'unique/c1': 1, 'unique/c2': 1 })
})

it.each([
  ['before', 'kept'],
  ['after', 'free'],
] as const)('killed %s the settlement of the holder: its id is %s (C-17, D-19)', async (side, state) => {
  const here = queuePlace()
  const options = { queue: 'unique', dedupId: 'd' }
  const worker = await here.worker({ queues: { unique: {} }, haltAt: `${side} the settlement` })
  await here.client.start('task', { ms: 0 }, { ...options, id: 'unique.1' })
  await worker.says('halted')
  await here.kill(worker)

  const again = here.client.start('task', { ms: 0 }, { ...options, id: 'unique.2' })
  if (state === 'free') expect(await again).toMatchObject({ newlySubmitted: true })
  else expect(await refusal(again)).toMatchObject({ code: 'QUEUE_DEDUPLICATED', holder: 'unique.1' })
  await here.worker({ queues: { unique: {} } })
  await here.drained(['unique'])
  const next = await here.client.start('task', { ms: 0 }, { ...options, id: 'unique.3' })
  expect(next.newlySubmitted).toBe(true)
  await next.result()
  const { faults, begins } = accountOf(here.journal.read())
  expect(faults).toEqual([])
  expect(begins.get('unique.1')).toHaveLength(state === 'kept' ? 2 : 1)
})
