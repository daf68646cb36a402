/** Workers of the scenarios, and the test's own engine over the same file. */
import { expect } from 'vitest'
import { Engine } from '../../src/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { ended, notebook, until } from '../api/engine/support.ts'
import { type Place, place } from './place.ts'
import { type Child, start } from './processes.ts'
import { scenarios } from './scenarios.ts'

export interface Stage extends Place {
  readonly definitions: ReturnType<typeof scenarios>
  /** Not launched: it starts, watches and cancels, until the test launches it. */
  readonly engine: Engine
  readonly notes: ReturnType<typeof notebook>
  /** A worker that has launched its engine. `mute`: it never renews a lease, so only its writes tell it of a loss. */
  worker(options?: { readonly leaseMs?: number; readonly mute?: boolean }): Promise<Child>
}

/** `hold`: what runs of the test's own engine wait for where those of a worker are held; nothing if unset. */
export function stage(hold: (runId: string) => Promise<void> = () => Promise.resolve()): Stage {
  const here = place()
  const definitions = scenarios({ journal: here.journal, hold, elapsed: () => performance.now() })
  const notes = notebook()
  const engine = ended(
    new Engine({ store: sqlite(here.store), definitions: Object.values(definitions), logger: notes }),
  )
  return {
    ...here,
    ...{ definitions, engine, notes },
    worker: async ({ leaseMs, mute = false } = {}) => {
      const child = start('worker.ts', here.store, here.log, String(leaseMs ?? ''), mute ? 'mute' : '')
      child.tell('launch')
      await child.says('launched')
      return child
    },
  }
}

/** What became of each attempt of a run. */
export async function outcomes({ engine }: Stage, id: string): Promise<readonly string[]> {
  return (await engine.runs.attempts(id)).map(({ outcome }) => outcome)
}

/** Takes over whatever can be taken over until the run has ended. */
export async function recoverUntilEnded({ engine }: Stage, id: string): Promise<void> {
  const isOver = async (): Promise<boolean> => {
    await engine.recover()
    return (await engine.handle(id).fetchResult()) !== undefined
  }
  await until(isOver, `the end of ${id}`, 30_000)
}

/** Asserts that a child left by itself. */
export async function leaves(child: Child): Promise<void> {
  expect(await child.ended).toEqual({ code: 0, signal: null })
}
