/**
 * What people write in workflows, one idiom each, crashed at every point of its history: the same result, and no effect
 * of a recorded step again.
 */
import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import type { WorkflowContext } from '../../../src/api/context.ts'
import { Recorder } from './recorder.ts'
import { turns, walkToEnd } from './rehearsal.ts'

type Ctx = WorkflowContext<unknown>
/** A step that gives its name, and is counted. */
type Act = (name: string, work?: number) => Promise<string>
type Idiom = (act: Act, ctx: Ctx) => Promise<unknown>

const atOnce = async (): Promise<void> => {}

async function perform(entries: Recorder['entries'], idiom: Idiom) {
  const recorder = new Recorder(entries, atOnce)
  const ran: string[] = []
  const end = await walkToEnd(recorder, (ctx) => {
    const act: Act = (name, work = 0) =>
      ctx.step(name, async ({ idempotencyKey }) => {
        ran.push(idempotencyKey)
        await turns(work)
        if (name.startsWith('bad')) throw new Error(`${name} failed`)
        return name
      })
    return idiom(act, ctx)
  })
  return { end, ran, entries: recorder.entries }
}

function recordedKeys(entries: Recorder['entries']): readonly string[] {
  return entries.flatMap(({ type, position }) => (type === 'outcome' ? [`run:${position}`] : []))
}

class Cart {
  readonly #act: Act

  constructor(act: Act) {
    this.#act = act
  }

  readonly add = async (item: string): Promise<string> => this.#reserve(item)

  async #reserve(item: string): Promise<string> {
    return this.#act(`reserve ${item}`)
  }
}

async function tree(act: Act, path: string, depth: number): Promise<number> {
  await act(`node ${path}`, path.length % 3)
  if (depth === 0) return 1
  const below = await Promise.all([tree(act, `${path}0`, depth - 1), tree(act, `${path}1`, depth - 1)])
  return below.reduce((sum, leaves) => sum + leaves, 0)
}

async function pool<T>(limit: number, tasks: readonly (() => Promise<T>)[]): Promise<readonly T[]> {
  const left = [...tasks.entries()]
  const results: T[] = []
  const worker = async (): Promise<void> => {
    for (let task = left.shift(); task !== undefined; task = left.shift()) results[task[0]] = await task[1]()
  }
  await Promise.all(Array.from({ length: limit }, worker))
  return results
}

async function* pages(act: Act): AsyncGenerator<string> {
  for (let page = 0; page < 4; page += 1) yield act(`page ${page}`)
}

function* script(act: Act): Generator<Promise<string>, string, string> {
  const first = yield act('first')
  const second = yield act(`${first}, second`)
  return `${second}, done`
}

async function direct(lines: Generator<Promise<string>, string, string>): Promise<string> {
  let line = lines.next()
  while (line.done !== true) line = lines.next(await line.value)
  return line.value
}

const idioms: Record<string, Idiom> = {
  'a race with a sleep as timeout that the step wins': async (act, ctx) => {
    const won = []
    for (let item = 0; item < 3; item += 1) won.push(await Promise.race([act(`item ${item}`, 2), ctx.sleep('1h')]))
    return won
  },
  'a race with a sleep as timeout that the sleep wins': async (act, ctx) => {
    const late = ctx.sleep('2h').then(() => act('late'))
    const winner = await Promise.race([late, ctx.sleep('1h').then(() => 'timeout')])
    return [winner, await act('after')]
  },
  'a loop over races that removes the winners': async (act) => {
    const left = new Map([5, 1, 3].map((work) => [work, act('leg', work).then(() => work)]))
    const order: string[] = []
    while (left.size > 0) {
      const winner = await Promise.race(left.values())
      left.delete(winner)
      order.push(await act(`after ${winner}`))
    }
    return order
  },
  'for await over a generator of steps': async (act) => {
    const seen: string[] = []
    for await (const page of pages(act)) seen.push(page, await act(`handle ${page}`))
    return seen
  },
  'a generator that is driven': (act) => direct(script(act)),
  'a pool of three': (act) =>
    pool(
      3,
      Array.from({ length: 8 }, (_, task) => async () => [await act('load', (task * 5) % 4), await act('save')]),
    ),
  recursion: (act) => tree(act, '', 3),
  'a large value': async (_, ctx) => {
    const text = await ctx.step('large', () => 'x'.repeat(3_000_000))
    const [length] = await Promise.all([ctx.step('length', () => text.length), ctx.step('again', () => text)])
    return length
  },
  'throws in then-chains': (act) =>
    act('one')
      .then((one) => act(`bad ${one}`))
      .then(() => act('never'))
      .catch((error: unknown) => act(`recover from ${String(error)}`))
      .then((text) => {
        throw new Error(text)
      })
      .catch(String)
      .then(async (text) => [text, await act('last')]),
  'errors side by side': async (act) => {
    const ends = await Promise.allSettled([act('bad a', 2), act('b'), act('bad c')])
    const any = await Promise.any([act('bad d'), act('e', 3), act('f', 1)])
    const none = await Promise.any([act('bad g'), act('bad h', 2)]).catch((error: AggregateError) => error.errors)
    return [ends.map(({ status }) => status), any, String(none)]
  },
  'a step awaited later than it fails': async (act) => {
    const failing = act('bad early')
    await act('slow', 5)
    return failing.catch(String)
  },
  'plain promises between steps': async (act) => {
    await Promise.resolve()
    const one = await act('one')
    await new Promise((resolve) => setTimeout(resolve, 3))
    const two = await act('two')
    await crypto.subtle.digest('SHA-256', new Uint8Array(8))
    return [one, two, await act('three')]
  },
  'try and finally': async (act) => {
    try {
      return await act('bad work')
    } catch (error) {
      return [String(error), await act('compensate')]
    } finally {
      await act('release')
    }
  },
  'methods of a class, unbound': async (act) => {
    const cart = new Cart(act)
    return Promise.all(['a', 'b', 'c'].map(cart.add))
  },
  'unbound methods of the context': async (_, ctx) => {
    const step = ctx.step.bind(ctx)
    return [ctx.uuid(), await step('bound', () => ctx.runId), ctx.random()]
  },
  'an event emitter': async (act) => {
    const emitter = new EventEmitter()
    const heard: Promise<string>[] = []
    emitter.on('order', (id: string) => heard.push(act(`ship ${id}`)))
    for (const id of ['1', '2']) emitter.emit('order', await act(id))
    return Promise.all(heard)
  },
  'callbacks of timers': async (act) => {
    const later = (name: string, ms: number): Promise<string> =>
      new Promise((resolve, reject) => {
        setTimeout(() => void act(name).then(resolve, reject), ms)
      })
    return [await later('one', 2), await Promise.all([later('two', 4), later('three', 1)])]
  },
  'a lock': async (act) => {
    let last: Promise<unknown> = Promise.resolve()
    const order: string[] = []
    const locked = (name: string): Promise<unknown> => {
      last = last.then(async () => order.push(await act(name, 1), await act(`${name}!`)))
      return last
    }
    await Promise.all(['a', 'b', 'c'].map(locked))
    return order
  },
  'a sleep that is awaited long after it was begun': async (act, ctx) => {
    const until = ctx.sleep('1h')
    const done = [await act('a'), await act('b')]
    await ctx.sleep('2h')
    await until
    return [...done, await act('c')]
  },
}

it.each(Object.entries(idioms))('W4: %s, crashed at every point', async (_, idiom) => {
  const first = await perform([], idiom)
  expect(first.end).toMatchObject({ type: 'returned' })
  expect(new Set(first.ran).size).toBe(first.ran.length)
  for (let cut = 0; cut <= first.entries.length; cut += 1) {
    const kept = first.entries.slice(0, cut)
    const { end, ran } = await perform(kept, idiom)
    expect(ran.filter((key) => recordedKeys(kept).includes(key))).toEqual([])
    expect(new Set(ran).size).toBe(ran.length)
    expect(end).toEqual(first.end)
  }
})
