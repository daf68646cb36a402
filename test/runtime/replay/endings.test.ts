/** A pass that loses its claim, its store or its engine at any moment stops where it is, and leaves a sound history. */
import { expect, it, onTestFinished } from 'vitest'
import { workflowContext } from '../../../src/api/context.ts'
import { realScheduler } from '../../../src/core/scheduler.ts'
import { silent } from '../../../src/observe/log.ts'
import { readHistory } from '../../../src/runtime/replay/history.ts'
import { Pass, type PassEnd } from '../../../src/runtime/replay/pass.ts'
import type { NewCheckpoint } from '../../../src/store/records.ts'
import { Dice } from './dice.ts'
import { anyDelay, type Body, codec, FastClock, Recorder, turns, walkToEnd } from './rehearsal.ts'

interface Notes {
  begun: number
  /** Begun although the pass was told to end. */
  late: number
  /** Signals of steps that run. */
  readonly running: Set<AbortSignal>
  moves: number
}

function newNotes(): Notes {
  return { begun: 0, late: 0, running: new Set(), moves: 0 }
}

function busyBody(notes: Notes, isOver: () => boolean): Body {
  return async (ctx) => {
    const leg = async (id: number): Promise<number> => {
      for (let index = 0; index < 3; index += 1) {
        await ctx.step('leg', async ({ signal }) => {
          notes.begun += 1
          if (isOver()) notes.late += 1
          notes.running.add(signal)
          await turns((id * 7 + index * 3) % 5)
          notes.running.delete(signal)
        })
        notes.moves += 1
        if (id === 2) await turns(2)
      }
      return id
    }
    const first = await Promise.race([leg(1), leg(2), ctx.sleep('10s').then(() => 0)])
    await Promise.all([leg(3), leg(4), ctx.sleep(20)])
    return first
  }
}

function newPass(recorder: Recorder, store: (entries: readonly NewCheckpoint[]) => Promise<boolean>): Pass {
  return new Pass({
    ...{ runId: 'run', clock: new FastClock(1), codec, scheduler: realScheduler, store },
    history: readHistory(recorder.entries),
    random: { next: () => 0.5, fill: (bytes) => bytes },
    onEvent: () => {},
  })
}

function walkBusy(pass: Pass, notes: Notes): Promise<PassEnd> {
  const ctx = workflowContext({ pass, state: undefined, logger: silent }, undefined)
  return pass.walk(() => busyBody(notes, () => pass.over)(ctx))
}

/** After its end a pass moves no more, and has told all that runs to stop. */
async function expectStillness(notes: Notes): Promise<void> {
  for (const signal of notes.running) expect(signal.aborted).toBe(true)
  expect(notes.late).toBe(0)
  const { begun, moves } = notes
  await turns(30)
  expect(notes).toMatchObject({ begun, moves })
}

async function expectSound(recorder: Recorder): Promise<void> {
  // What was under way when the pass ended is stored before another pass can begin.
  await recorder.store([])
  const end = await walkToEnd(
    recorder,
    busyBody(newNotes(), () => false),
  )
  expect(end).toMatchObject({ type: 'returned' })
}

function watchRejections(): readonly unknown[] {
  const rejections: unknown[] = []
  const tell = (reason: unknown): void => void rejections.push(reason)
  process.on('unhandledRejection', tell)
  onTestFinished(() => void process.off('unhandledRejection', tell))
  return rejections
}

const CALLS = 40

it.each(['lost', 'refused'] as const)('a claim that is %s at any entry ends the pass there', async (how) => {
  const rejections = watchRejections()
  for (let last = 0; last < CALLS; last += 1) {
    const recorder = new Recorder([], anyDelay(new Dice(last)))
    const notes = newNotes()
    let calls = 0
    const pass = newPass(recorder, async (entries) => {
      calls += 1
      if (calls <= last) return recorder.store(entries)
      await turns(calls % 3)
      if (how === 'lost') return false
      throw new Error('refused')
    })
    const end = await walkBusy(pass, notes)
    if (calls <= last) break
    expect(end.type).toBe(how === 'lost' ? 'aborted' : 'failed')
    await expectStillness(notes)
    await expectSound(recorder)
  }
  expect(rejections).toEqual([])
})

it('an abort at any moment, also while a replay goes on, stops the body and every step', async () => {
  const rejections = watchRejections()
  for (let seed = 0; seed < 60; seed += 1) {
    const dice = new Dice(seed)
    const recorder = new Recorder([], anyDelay(dice))
    for (let passes = 0; passes < 3; passes += 1) {
      const notes = newNotes()
      const pass = newPass(recorder, recorder.store)
      const ending = walkBusy(pass, notes)
      await turns(dice.below(60))
      const patient = dice.chance(0.5)
      const movesBefore = notes.moves
      pass.abort(new Error('stop'), { patient })
      if (pass.over) for (const signal of notes.running) expect(signal.aborted).toBe(true)
      const end = await ending
      if (end.type === 'aborted') {
        expect(notes.moves).toBe(movesBefore)
        if (patient) expect(notes.running.size).toBe(0)
      }
      await expectStillness(notes)
      await recorder.store([])
    }
    await expectSound(recorder)
  }
  expect(rejections).toEqual([])
})
