/** A pass that loses its claim, its store or its engine at any moment stops where it is, and leaves a sound history. */
import { expect, it, onTestFinished } from 'vitest'
import type { Pass, PassEnd } from '../../../src/runtime/replay/pass.ts'
import type { Port } from '../../../src/runtime/replay/port.ts'
import { Dice } from './dice.ts'
import { Recorder } from './recorder.ts'
import {
  anyDelay,
  type Body,
  FastClock,
  HastyScheduler,
  newPass,
  type Outside,
  turns,
  walkBody,
  walkToEnd,
} from './rehearsal.ts'

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
    const child = async (): Promise<unknown> => (await ctx.start('child')).result()
    const asked = ctx.waitForSignal('asked', { timeout: '1h' })
    const first = await Promise.race([leg(1), leg(2), ctx.sleep('10s').then(() => 0)])
    await Promise.all([leg(3), leg(4), child(), ctx.sleep(20), ctx.waitForSignal('unheard', { timeout: 15 })])
    await ctx.sendSignal('asked', first)
    return asked
  }
}

/** The recorder, where children end soon; every command may be met by `trouble` instead. */
function portOf(recorder: Recorder, trouble: () => Promise<boolean> = async () => false): Port {
  const lost = { type: 'claimLost' } as const
  return {
    store: async (entries) => ((await trouble()) ? false : recorder.store(entries)),
    perform: async (entry, action) => {
      if (await trouble()) return lost
      const outcome = await recorder.perform(entry, action)
      if (action.type === 'start') void endSoon(recorder, action.run.id)
      return outcome
    },
    wait: async (position, key, entries) => ((await trouble()) ? lost : recorder.wait(position, key, entries)),
    expire: async (position) => ((await trouble()) ? lost : recorder.expire(position)),
    ending: (runId) => recorder.ending(runId),
    attempts: () => recorder.attempts(),
    onEnded: (runId, listener) => recorder.onEnded(runId, listener),
    onSignal: (position, listener) => recorder.onSignal(position, listener),
  }
}

async function endSoon(recorder: Recorder, childId: string): Promise<void> {
  await turns(3)
  recorder.change((facts) => facts.endChild(childId, { status: 'SUCCESS', output: '1' }))
}

function passOf(recorder: Recorder, port = portOf(recorder)): Pass {
  return newPass({ port, entries: recorder.entries, clock: new FastClock(1) })
}

function walkBusy(pass: Pass, notes: Notes): Promise<PassEnd> {
  return walkBody(
    pass,
    busyBody(notes, () => pass.over),
  )
}

/** After its end a pass moves no more, and has told all that runs to stop. */
async function expectStillness(recorder: Recorder, notes: Notes): Promise<void> {
  expect(recorder.listeners).toBe(0)
  for (const signal of notes.running) expect(signal.aborted).toBe(true)
  expect(notes.late).toBe(0)
  const { begun, moves } = notes
  await turns(30)
  expect(notes).toMatchObject({ begun, moves })
}

async function expectSound(recorder: Recorder): Promise<void> {
  // What was under way when the pass ended is stored before another pass can begin.
  await recorder.store([])
  const body = busyBody(newNotes(), () => false)
  const outside: Outside = {
    act: async () => {
      const going = [...recorder.facts.children].find(([, { ending }]) => ending === null)
      if (going !== undefined) await endSoon(recorder, going[0])
      return going !== undefined
    },
  }
  const end = await walkToEnd(recorder, body, { outside, scheduler: new HastyScheduler() })
  expect(end).toMatchObject({ type: 'returned', value: { ok: true } })
}

function watchRejections(): readonly unknown[] {
  const rejections: unknown[] = []
  const tell = (reason: unknown): void => void rejections.push(reason)
  process.on('unhandledRejection', tell)
  onTestFinished(() => void process.off('unhandledRejection', tell))
  return rejections
}

const CALLS = 40

it.each(['lost', 'refused'] as const)('a claim that is %s at any command ends the pass there', async (how) => {
  const rejections = watchRejections()
  for (let last = 0; last < CALLS; last += 1) {
    const recorder = new Recorder([], anyDelay(new Dice(last)))
    const notes = newNotes()
    let calls = 0
    const trouble = async (): Promise<boolean> => {
      calls += 1
      if (calls <= last) return false
      await turns(calls % 3)
      if (how === 'lost') return true
      throw new Error('refused')
    }
    const pass = passOf(recorder, portOf(recorder, trouble))
    const end = await walkBusy(pass, notes)
    if (calls <= last) break
    expect(end.type).toBe(how === 'lost' ? 'aborted' : 'failed')
    await expectStillness(recorder, notes)
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
      const pass = passOf(recorder)
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
      await expectStillness(recorder, notes)
      await recorder.store([])
    }
    await expectSound(recorder)
  }
  expect(rejections).toEqual([])
})
