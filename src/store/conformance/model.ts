/**
 * The model test: random sequences of commands run on a store and on `memory()` side by side. Every answer and,
 * after every command, everything that can be seen must be the same. It finds what no one thought of testing; a
 * failure is shrunk to the few commands that cause it and printed with its seed.
 *
 * fast-check is given by the caller, so that the kit doesn't depend on it.
 */
import assert from 'node:assert/strict'
import type fc from 'fast-check'
import type { Clock } from '../../core/clock.ts'
import { memory } from '../memory/index.ts'
import type { ConformanceApi } from './index.ts'
import { ManualClock } from './manual-clock.ts'
import type { Operation } from './model-operations.ts'
import { operation } from './model-operations.ts'
import { Script } from './model-script.ts'
import { visible } from './model-view.ts'
import type { ConformanceDatabase } from './world.ts'

export interface ModelConformanceOptions {
  readonly name: string
  readonly api: ConformanceApi
  /** A new, empty database whose stores live on `clock`. Called once for each sequence. */
  readonly create: (clock: Clock) => Promise<ConformanceDatabase>
  /** The default export of fast-check. */
  readonly fc: typeof fc
  /** How many sequences are tried. Default: 100. */
  readonly sequences?: number
  /** The longest sequence. Default: 50 operations. */
  readonly length?: number
  /**
   * Ends the test, or the shrinking of a failure, early; keep it below the runner's own time-out, which would hide
   * what was found. Default: 20,000 ms.
   */
  readonly timeLimitMs?: number
  /** Repeats the sequences of an earlier run. Default: new ones each time. */
  readonly seed?: number
  /** False: a failure is reported as it was found, at once. Default: true. */
  readonly shrink?: boolean
}

/** Declares one test. */
export function modelConformance(options: ModelConformanceOptions): void {
  const { name, api, create, fc: check, sequences = 100, length = 50, timeLimitMs = 20_000 } = options
  const parameters = {
    numRuns: sequences,
    interruptAfterTimeLimit: timeLimitMs,
    endOnFailure: options.shrink === false,
    ...(options.seed === undefined ? {} : { seed: options.seed }),
  }
  const property = check.asyncProperty(
    check.array(operation(check), { minLength: Math.floor(length / 2), maxLength: length, size: 'max' }),
    (operations) => sideBySide(operations, create),
  )
  api.it(`${name} and the memory store do the same, whatever the commands`, async () => {
    await check.assert(property, parameters)
  })
}

async function sideBySide(
  operations: readonly Operation[],
  create: (clock: Clock) => Promise<ConformanceDatabase>,
): Promise<void> {
  const clock = new ManualClock()
  const reference = memory({ clock })
  const database = await create(clock)
  const subject = database.connect()
  try {
    await reference.open()
    await subject.open()
    const script = new Script(clock, reference)
    for (const drawn of operations) {
      const call = await script.toCall(drawn)
      const expected = await call(reference)
      assert.deepEqual(await call(subject), expected, `answer to ${JSON.stringify(drawn)}`)
      assert.deepEqual(await visible(subject), await visible(reference), `state after ${JSON.stringify(drawn)}`)
    }
  } finally {
    await subject.close()
    await database.destroy()
  }
}
