import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { Engine, type Store, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { takeDetour } from './crash-points.ts'
import { Dice } from './dice.ts'
import { act, generate, type Program, type Stage } from './programs.ts'
import { turns } from './rehearsal.ts'

/** The store as a process sees it that dies after so many commits: nothing is ever answered again. */
function until(commits: number, store: Store, died: () => void): Store {
  let left = commits
  const dead = new Promise<never>(() => {})
  const act = <T>(call: () => Promise<T>): Promise<T> => (left < 0 ? dead : call())
  const mortal: Partial<Store> = {
    commit: (commands) => {
      left -= 1
      if (left < 0) died()
      return act(() => store.commit(commands))
    },
    claim: (request) => act(() => store.claim(request)),
    renew: (claims, leaseMs) => act(() => store.renew(claims, leaseMs)),
    reclaim: (request) => act(() => store.reclaim(request)),
    endings: (ids) => act(() => store.endings(ids)),
    leaseThread: () => null,
  }
  return new Proxy(store, {
    get: (_, key) => {
      const own: unknown = Reflect.get(mortal, key)
      if (own !== undefined) return own
      const value: unknown = Reflect.get(store, key)
      return typeof value === 'function' ? value.bind(store) : value
    },
  })
}

/** Sleeps of a moment: here the clock is the host's. */
function brief(program: Program): Program {
  return program.map((operation) => {
    if (operation.type === 'sleep') return { ...operation, ms: operation.ms % 7 }
    return 'chains' in operation ? { ...operation, chains: operation.chains.map(brief) } : operation
  })
}

interface Ran {
  readonly place: string
  readonly key: string
}

/** Runs a random program in engines that die, then in one that doesn't, over what `open` gives. */
async function survive(seed: number, open: () => Store): Promise<void> {
  const dice = new Dice(seed)
  const program = brief(generate(dice))
  const ran: Ran[] = []
  /** As a process has it: what goes on in one that died counts no more. */
  const flowOf = (process: { alive: boolean }) => {
    const stage: Stage = {
      ran: (place, key) => void (process.alive && ran.push({ place, key })),
      decided: () => {},
      detour: () => takeDetour('slow', dice),
      work: (kind) => turns(dice.below(kind + 1)),
    }
    return workflow('flow', async (ctx) => act(program, { ctx, stage }).catch(String))
  }
  const flow = flowOf({ alive: true })
  const id = `run-${seed}`
  const store = open()
  const starter = new Engine({ store, definitions: [flow], logger: silent })
  await starter.start(flow, undefined, { id })
  for (let crashes = 1 + dice.below(3); crashes > 0; crashes -= 1) {
    const died = await new Promise<boolean>((resolve) => {
      const process = { alive: true }
      const die = (): void => {
        process.alive = false
        resolve(true)
      }
      const engine = new Engine({
        store: until(dice.below(20), open(), die),
        definitions: [flowOf(process)],
        logger: silent,
      })
      void engine.launch().then(() =>
        engine
          .handle(flow, id)
          .result()
          .then(() => resolve(false)),
      )
    })
    if (!died) break
    const owners = (await store.processes()).map(({ owner }) => owner)
    await store.reclaim({ deadOwners: owners, limit: 10 })
    const recorded = await recordedKeys(store, id)
    ran.push({ place: `crash ${recorded.join(' ')}`, key: '' })
  }
  const last = new Engine({ store, definitions: [flow], logger: silent })
  await last.launch()
  await last.handle(flow, id).result()
  await last.shutdown()
  await starter.shutdown()
  check(seed, ran)
}

async function recordedKeys(store: Store, id: string): Promise<readonly string[]> {
  const entries = (await store.histories([id])).get(id) ?? []
  return entries.filter(({ type }) => type === 'outcome').map(({ position }) => `${id}:${position}`)
}

function check(seed: number, ran: readonly Ran[]): void {
  const places = new Map<string, string>()
  let recorded = new Set<string>()
  for (const { place, key } of ran) {
    if (key === '') recorded = new Set(place.split(' '))
    else {
      expect(recorded.has(key), `seed ${seed}: ${place} ran again as ${key}`).toBe(false)
      expect(places.get(key) ?? place, `seed ${seed}: ${key}`).toBe(place)
      places.set(key, place)
    }
  }
}

it('W4: 40 random workflows survive engines that die, on memory', { timeout: 60_000 }, async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const store = memory()
    await survive(seed, () => store)
  }
})

it('W4: 10 random workflows survive engines that die, on SQLite', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-crashes-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (let seed = 101; seed <= 110; seed += 1) await survive(seed, () => sqlite(join(folder, `${seed}.db`)))
})

const child = workflow('child', async (ctx, n: number) => ctx.step('double', () => n * 2))
const conversation = workflow('conversation', async (ctx) => {
  const followUp = await ctx.step('stage', async ({ effects }) => {
    effects.put('staged', new Date(0))
    effects.sendSignal('first', 'from a step')
    return effects.start(child, 1)
  })
  const first = await ctx.waitForSignal('first')
  const started = await ctx.start(child, 2)
  const output = await started.result()
  const sent = await ctx.sendSignal('second', output)
  const second = await ctx.waitForSignal('second', { timeout: '1h' })
  return { followUp, first, child: started.id, output, sent, second }
})
const definitions = [child, conversation]

/** True if the engine that began the run died; then another one has finished it. */
async function diesAfter(commits: number, open: () => Store): Promise<boolean> {
  const store = open()
  const starter = new Engine({ store, definitions, logger: silent })
  const run = await starter.start(conversation, undefined, { id: 'run' })
  const died = await new Promise<boolean>((resolve) => {
    const mortal = until(commits, open(), () => resolve(true))
    const engine = new Engine({ store: mortal, definitions, logger: silent })
    void engine.launch().then(() =>
      engine
        .handle('run')
        .result()
        .then(() => resolve(false)),
    )
  })
  const owners = (await store.processes()).map(({ owner }) => owner)
  await store.reclaim({ deadOwners: owners, limit: 10 })
  const last = new Engine({ store, definitions, logger: silent })
  await last.launch()
  expect([commits, await run.result()]).toEqual([
    commits,
    {
      ...{ followUp: 'run~0.0.0', first: { ok: true, payload: 'from a step' } },
      ...{ child: 'run~2', output: 4, sent: 'buffered', second: { ok: true, payload: 4 } },
    },
  ])
  expect(await last.handle('run~0.0.0').result()).toBe(2)
  const { runs } = await last.runs.list({ definition: 'child' })
  expect(new Set(runs.map(({ id }) => id))).toEqual(new Set(['run~2', 'run~0.0.0']))
  expect(await last.kv.get('staged')).toEqual(new Date(0))
  // Each signal was sent once, and taken.
  expect([await last.sendSignal('first'), await last.sendSignal('second')]).toEqual(['buffered', 'buffered'])
  await Promise.all([last.shutdown(), starter.shutdown()])
  return died
}

it.each(['memory', 'sqlite'] as const)(
  'W33, W34, Q38: signals, children and effects are each there once, whenever an engine dies, on %s',
  { timeout: 60_000 },
  async (kind) => {
    const folder = mkdtempSync(join(tmpdir(), 'perdure-crashes-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    let commits = 0
    for (let died = true; died; commits += 1) {
      const store = memory()
      died = await diesAfter(commits, () => (kind === 'memory' ? store : sqlite(join(folder, `${commits}.db`))))
    }
    expect(commits).toBeGreaterThan(8)
  },
)
