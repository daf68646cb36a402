/** What an engine does to the process it lives in: async contexts, its log, the event loop, and its exit. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Engine, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { freshFile, KINDS } from './places.ts'
import { ended, notebook, Tally, until } from './support.ts'

const logger = silent

describe.each(KINDS)('surroundings on $kind', ({ place }) => {
  it('F-09 no loop and no body keeps the trace context of a caller; a body has its own', async () => {
    const trace = new AsyncLocalStorage<string>()
    const clock = new MockClock()
    const seen: unknown[] = []
    const body = workflow('body', async (ctx) => {
      seen.push(trace.getStore())
      await trace.run('own', async () => {
        await ctx.step('s', () => seen.push(trace.getStore()))
        await ctx.sleep('10s')
        seen.push(trace.getStore())
      })
    })
    const store = place(clock).connect()
    const contexts = new Set<unknown>()
    store.fate = (method) => {
      if (method !== 'open') contexts.add(trace.getStore())
      return 'answered'
    }
    const engine = ended(new Engine({ store, definitions: [body], logger }))
    const early = await trace.run('early', () => engine.start(body))
    await trace.run('launch', () => engine.launch())
    const direct = await trace.run('start', () => engine.start(body))
    await until(() => seen.length === 4)
    await clock.advance('1m')
    await trace.run('result', () => Promise.all([early.result(), direct.result()]))
    expect(seen.filter((each) => each === undefined)).toHaveLength(4)
    expect(seen.filter((each) => each === 'own')).toHaveLength(4)
    expect([...contexts]).toEqual([undefined])
  })

  it('the logger is told what somebody should know; ctx.log is silent on what is replayed', async () => {
    const clock = new MockClock()
    const log = notebook()
    const home = place(clock)
    const talker = workflow('talker', async (ctx) => {
      ctx.log.info('before')
      await ctx.step('s', () => {})
      await ctx.sleep('1h')
      ctx.log.info('after', { runId: ctx.runId })
    })
    const store = home.connect()
    const dead = ended(new Engine({ store, definitions: [talker], logger: log }))
    await dead.launch()
    const { id } = await dead.start(talker)
    await clock.advance('2h')
    expect(await dead.handle(id).status()).toBe('SUCCESS')
    expect(log.messages('info')).toEqual(['before', 'after'])
    expect(log.messages('debug')).toContain('run suspended until what it waits for is there')
    expect([...log.messages('warn'), ...log.messages('error')]).toEqual([])
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no disk for logs')
      },
    ],
    ['rejects', () => Promise.reject(new Error('no network for logs'))],
  ])('a logger that %s fails no run and leaves no rejection unhandled', async (_how, write) => {
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const talker = workflow('talker', async (ctx) => {
      ctx.log.error('before')
      return ctx.step('s', () => 'done')
    })
    const bad = { debug: write, info: write, warn: write, error: write }
    const engine = ended(new Engine({ store: place().connect(), definitions: [talker], logger: bad }))
    await engine.launch()
    expect(await (await engine.start(talker)).result()).toBe('done')
    await engine.shutdown()
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  })

  it('the delay of the event loop stays small with 200 workflows in flight', async () => {
    const tally = new Tally()
    const steps = workflow('steps', async (ctx) => {
      for (let n = 0; n < 10; n += 1) await ctx.step(`s${n}`, () => tally.add('step'))
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [steps], logger }))
    await engine.launch()
    await (await engine.start(steps)).result()
    // Others share this machine: they may spoil a round, but an engine that blocks the loop spoils every one.
    const delays: number[] = []
    while (delays.length < 5 && !delays.some((ms) => ms < 60)) {
      const delay = monitorEventLoopDelay({ resolution: 1 })
      delay.enable()
      const runs = await Promise.all(Array.from({ length: 200 }, () => engine.start(steps)))
      await Promise.all(runs.map((run) => run.result()))
      delay.disable()
      delays.push(delay.percentile(90) / 1e6)
    }
    expect(tally.of('step')).toBe(10 + 2_000 * delays.length)
    expect(Math.min(...delays)).toBeLessThan(60)
  })
})

describe('the process of an engine', () => {
  async function run(
    script: string,
    ...args: readonly string[]
  ): Promise<{ code: number | null; output: string; ms: number }> {
    const file = fileURLToPath(new URL(`./children/${script}`, import.meta.url))
    const child = spawn(process.execPath, ['--unhandled-rejections=strict', '--import', 'tsx', file, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    onTestFinished(() => {
      if (child.exitCode === null) child.kill('SIGKILL')
    })
    let output = ''
    let downAt = 0
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        if (output.includes('down')) downAt ||= performance.now()
      })
    }
    await once(child, 'close')
    return { code: child.exitCode, output, ms: performance.now() - downAt }
  }

  it.each(['memory', 'sqlite'])(
    'F-01 exits by itself within a second of the shutdown: %s',
    async (kind) => {
      const { code, output, ms } = await run('exits.ts', kind, freshFile())
      expect([code, output.trim()]).toEqual([0, 'down'])
      expect(ms).toBeLessThan(1_000)
    },
    30_000,
  )

  it.each(['memory', 'sqlite'])(
    'F-13 no rejection of the library is unhandled under store trouble: %s',
    async (kind) => {
      const { code, output } = await run('trouble.ts', kind, freshFile())
      expect([code, output.trim()]).toEqual([0, '40 runs, 120 steps, down'])
    },
    60_000,
  )
})
