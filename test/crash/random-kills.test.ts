/** A worker in full swing is killed at 100 random moments and started again each time; then its work is counted. */
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Engine } from '../../src/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { ended, notebook } from '../api/engine/support.ts'
import { busyWorkflow, STEP_POSITIONS } from './busy.ts'
import type { Note } from './journal.ts'
import { type Place, place } from './place.ts'
import { type Child, start } from './processes.ts'

const KILLS = 100

/** One worker works while the next one loads. */
async function killAtRandom({ store, log, journal }: Place): Promise<void> {
  const next = (): Child => start('busy.ts', store, log)
  let worker = next()
  for (let kills = 0; kills < KILLS; kills += 1) {
    const successor = next()
    worker.tell('work')
    await worker.says('loaded')
    // One in eight is killed before it has done anything: while it opens the store, registers, takes over.
    if (Math.random() < 7 / 8) await worker.saysTimes(1 + Math.floor(Math.random() * 30), 'effect')
    await setTimeout(Math.random() * 8)
    await worker.kill()
    journal.note('killed', '', '', worker.pid)
    worker = successor
  }
  worker.tell('finish')
  expect(await worker.ended).toEqual({ code: 0, signal: null })
}

/** What the journal tells of the kills. */
interface Toll {
  /** Per step: its effects, and the kills that came between an effect and the acknowledgement of its record. */
  readonly steps: ReadonlyMap<string, { readonly effects: readonly string[]; readonly hits: number }>
  /** Kills of a process that had runs in hand, and of one with steps between effect and record. */
  readonly midRun: number
  readonly midStep: number
  /** Effects of steps that had been recorded. */
  readonly tooLate: readonly string[]
}

function tollOf(notes: readonly Note[]): Toll {
  const steps = new Map<string, { effects: string[]; hits: number }>()
  const recorded = new Set<string>()
  const tooLate: string[] = []
  /** Of the process that lives: runs in hand, steps with an effect and no record. */
  const runs = new Set<string>()
  const open = new Set<string>()
  const toll = { midRun: 0, midStep: 0 }
  for (const { what, key, value } of notes) {
    if (what === 'body') runs.add(key)
    else if (what === 'settled') runs.delete(key)
    else if (what === 'effect') {
      const step = steps.get(key) ?? { effects: [], hits: 0 }
      steps.set(key, step)
      step.effects.push(value)
      open.add(key)
      if (recorded.has(key)) tooLate.push(key)
    } else if (what === 'recorded') {
      recorded.add(key)
      open.delete(key)
    } else if (what === 'killed') {
      if (runs.size > 0) toll.midRun += 1
      if (open.size > 0) toll.midStep += 1
      for (const key of open) hit(steps.get(key))
      runs.clear()
      open.clear()
    }
  }
  return { ...toll, steps, tooLate }
}

function hit(step: { hits: number } | undefined): void {
  if (step !== undefined) step.hits += 1
}

async function allRuns(engine: Engine): Promise<readonly string[]> {
  const ids: string[] = []
  for (let cursor: string | undefined, last = false; !last; ) {
    const page = await engine.runs.list(cursor === undefined ? {} : { cursor })
    ids.push(...page.runs.map(({ id }) => id))
    cursor = page.cursor
    last = cursor === undefined
  }
  return ids
}

it(`${KILLS} random SIGKILLs of a busy worker lose nothing and repeat only what they interrupted`, async () => {
  const here = place()
  await killAtRandom(here)
  const { steps, midRun, midStep, tooLate } = tollOf(here.journal.read())

  const engine = ended(
    new Engine({ store: sqlite(here.store), definitions: [busyWorkflow(here.journal)], logger: notebook() }),
  )
  const ids = await allRuns(engine)
  const accepted = here.journal.of('accepted').map(({ key }) => key)
  expect(ids).toEqual(expect.arrayContaining(accepted))
  for (const id of ids) {
    // The recorded value of a step is that of its last effect: nothing happened after its record.
    const last = STEP_POSITIONS.map((position) => steps.get(`${id}:${position}`)?.effects.at(-1))
    expect(await engine.handle(id).fetchResult()).toEqual({ ok: true, output: last })
  }
  expect(tooLate).toEqual([])
  const repeated = [...steps].filter(([, { effects }]) => effects.length > 1)
  expect(repeated.filter(([, { effects, hits }]) => effects.length > 1 + hits)).toEqual([])
  expect(steps.size).toBe(ids.length * STEP_POSITIONS.length)

  const effects = [...steps.values()].reduce((sum, step) => sum + step.effects.length, 0)
  console.log(
    `${KILLS} kills: ${midRun} with runs in hand, ${midStep} between an effect and its record; ` +
      `${accepted.length} runs accepted, ${ids.length} ended; ${effects} effects of ${steps.size} steps, ` +
      `${repeated.length} steps repeated`,
  )
  expect(midRun).toBeGreaterThan(KILLS / 2)
  expect(midStep).toBeGreaterThan(KILLS / 4)
  expect(accepted.length).toBeGreaterThan(200)
}, 300_000)
