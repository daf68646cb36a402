/** What the tests of the engine have in common: engines that end with their test, doors, counts, and conditions. */
import { setImmediate, setTimeout } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { Logger } from '../../../src/index.ts'

/** The engine, shut down at once when the test ends. */
export function ended<E extends { shutdown(options: { timeout: number }): Promise<void> }>(engine: E): E {
  onTestFinished(() => engine.shutdown({ timeout: 0 }))
  return engine
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>> | undefined
}

/** A logger that keeps what it is told. */
export function notebook(): Logger & {
  readonly lines: readonly LogLine[]
  messages(level: LogLine['level']): string[]
} {
  const lines: LogLine[] = []
  const write =
    (level: LogLine['level']) =>
    (message: string, fields?: Readonly<Record<string, unknown>>): void =>
      void lines.push({ level, message, fields })
  return {
    lines,
    messages: (level) => lines.filter((line) => line.level === level).map(({ message }) => message),
    ...{ debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
  }
}

/** Something that a function waits at until the test opens it. */
export interface Door {
  readonly opened: Promise<void>
  open(): void
}

export function door(): Door {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Resolves as soon as the condition holds; fails after `withinMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = 'the condition',
  withinMs = 10_000,
): Promise<void> {
  const start = performance.now()
  for (let looks = 0; !(await condition()); looks += 1) {
    if (performance.now() - start > withinMs) throw new Error(`${what} did not come true within ${withinMs} ms`)
    await (looks < 50 ? setImmediate() : setTimeout(2))
  }
}

/** What a promise rejects with. */
export async function refusal(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it was not refused')
}

/** How often each thing happened. */
export class Tally {
  readonly #counts = new Map<string, number>()

  add(what: string): number {
    const count = this.of(what) + 1
    this.#counts.set(what, count)
    return count
  }

  of(what: string): number {
    return this.#counts.get(what) ?? 0
  }

  get all(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts)
  }
}
