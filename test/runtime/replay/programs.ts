/**
 * Random workflows: a generator of programs, and the body that runs one.
 *
 * Chains that run in parallel give their steps equal names. Awaits that are not durable (detours) stand anywhere in a
 * chain but at its beginning and its end: a chain that begins with one could not be told from its neighbour, and one
 * that ends with one would let an undurable instant decide a race, which no record can bring back. Nor does a call
 * without a name follow parallel chains: it could not be told from the second call of the last of them.
 */
import type { WorkflowContext } from '../../../src/api/context.ts'
import { type Conversation, converse, generateConversation, stagedIn, stageEffects } from './conversations.ts'
import type { Dice } from './dice.ts'

export type Operation =
  | {
      readonly type: 'step'
      readonly name: string
      readonly fails: 'never' | 'always' | 'once'
      readonly work: number
      readonly stages?: boolean
    }
  | { readonly type: 'sleep'; readonly ms: number }
  | { readonly type: 'now' }
  | { readonly type: 'derived' }
  | { readonly type: 'detour' }
  | { readonly type: 'dropped'; readonly name: string }
  | { readonly type: 'caught'; readonly chain: Program }
  | {
      readonly type: 'parallel'
      readonly how: 'all' | 'allSettled' | 'race' | 'any'
      readonly chains: readonly Program[]
    }
  /** Takes the winners of a race one by one, with a step after each. */
  | { readonly type: 'raceLoop'; readonly name: string; readonly chains: readonly Program[] }
  | Conversation

export type Program = readonly Operation[]

const LARGEST = 30

/** `keys`: of signals, for programs that also deal with others; filled with those that they use. */
export function generate(dice: Dice, keys?: Set<string>): Program {
  keys?.clear()
  const chain = generateChain({ dice, keys }, 'm', 2, 2 + dice.below(3))
  if (size(chain) > LARGEST) return generate(dice, keys)
  return dice.chance(0.2) ? [{ type: 'detour' }, ...chain] : chain
}

interface Generator {
  readonly dice: Dice
  readonly keys: Set<string> | undefined
}

function size(program: Program): number {
  return program.reduce((sum, operation) => sum + 1 + ('chains' in operation ? size(operation.chains.flat()) : 0), 0)
}

function generateChain(generator: Generator, name: string, depth: number, length: number): Program {
  const { dice } = generator
  const chain: Operation[] = []
  for (let index = 0; index < length; index += 1) {
    const place = `${name}${index}`
    const afterChains = chain.slice(-2).some((operation) => 'chains' in operation)
    chain.push(afterChains ? namedOperation(generator, place) : generateOperation(generator, place, depth))
    if (index < length - 1 && dice.chance(0.35)) chain.push({ type: 'detour' })
  }
  return chain
}

function generateOperation(generator: Generator, name: string, depth: number): Operation {
  const { dice } = generator
  if (depth > 0 && dice.chance(0.45)) {
    // The names of operations depend on their place in the chain alone: parallel chains have the same ones.
    const chains = Array.from({ length: 2 + dice.below(4) }, () =>
      generateChain(generator, `${name}.`, depth - 1, 1 + dice.below(3)),
    )
    const kind = dice.below(6)
    if (kind === 5) return { type: 'raceLoop', name: `${name}-after`, chains }
    const how = kind < 2 ? 'all' : dice.pick<'allSettled' | 'race' | 'any'>('allSettled', 'race', 'any')
    return { type: 'parallel', how, chains }
  }
  const kind = dice.below(6)
  if (kind === 0) return { type: 'sleep', ms: dice.pick(0, 20, 300, 900, 5_000, 3_600_000) }
  if (kind === 1) return { type: 'now' }
  if (kind === 2) return { type: 'derived' }
  return namedOperation(generator, name)
}

function namedOperation({ dice, keys }: Generator, name: string): Operation {
  if (keys !== undefined && dice.chance(0.55)) return generateConversation(dice, name, keys)
  const kind = dice.below(8)
  if (kind === 0) return { type: 'dropped', name }
  if (kind === 1) return { type: 'caught', chain: [{ type: 'step', name, fails: 'always', work: dice.below(4) }] }
  return {
    type: 'step',
    name,
    fails: dice.pick('never', 'never', 'never', 'never', 'once', 'always'),
    work: dice.below(5),
    ...(keys === undefined ? {} : { stages: dice.chance(0.5) }),
  }
}

/** What a pass of a program reports. */
export interface Stage {
  /** A step's body runs: `place` is which of the program, `key` its idempotency key. */
  ran(place: string, key: string): void
  /** The body takes a branch. */
  decided(place: string, branch: string): void
  detour(): Promise<unknown>
  /** How long a step works. */
  work(kind: number): Promise<unknown>
}

interface Actor {
  readonly ctx: WorkflowContext<unknown>
  readonly stage: Stage
}

export function act(program: Program, actor: Actor): Promise<unknown> {
  return actChain(program, actor, '')
}

async function actChain(chain: Program, actor: Actor, place: string): Promise<unknown[]> {
  const values: unknown[] = []
  for (const [index, operation] of chain.entries()) values.push(await actOne(operation, actor, `${place}/${index}`))
  return values
}

async function actOne(operation: Operation, actor: Actor, place: string): Promise<unknown> {
  const { ctx, stage } = actor
  switch (operation.type) {
    case 'step':
      return runStep(operation, actor, place)
    case 'sleep':
      return ctx.sleep(operation.ms)
    case 'now':
      return ctx.now()
    case 'derived':
      // A call follows, so that no chain begins or ends without one.
      return [await ctx.now(), ctx.uuid(), ctx.random(), await ctx.now()]
    case 'detour':
      return void (await stage.detour())
    case 'dropped':
      void runStep({ type: 'step', name: operation.name, fails: 'never', work: 1 }, actor, place)
      return ctx.sleep(0)
    case 'caught':
      return attempt(() => actChain(operation.chain, actor, place))
    case 'parallel':
      return actParallel(operation, actor, place)
    case 'raceLoop':
      return actRaceLoop(operation, actor, place)
    default:
      return attempt(() => converse(operation, ctx, place))
  }
}

function runStep(operation: Operation & { type: 'step' }, { ctx, stage }: Actor, place: string): Promise<unknown> {
  const { name, fails, work, stages = false } = operation
  const options = { maxAttempts: fails === 'once' ? 2 : 1, backoff: { base: 10 } }
  return ctx.step(name, options, async ({ idempotencyKey, attempt, effects }) => {
    stage.ran(place, idempotencyKey)
    if (stages) await stageEffects(effects, place, attempt)
    await stage.work(work)
    if (fails === 'always' || (fails === 'once' && attempt === 1)) throw new Error(`${place} failed`)
    return stages ? stagedIn(place, attempt) : `value of ${place}`
  })
}

async function actParallel(
  { how, chains }: Operation & { type: 'parallel' },
  actor: Actor,
  place: string,
): Promise<unknown> {
  const running = chains.map((chain, index) => actChain(chain, actor, `${place}.${index}`))
  const outcome = await attempt(async () => {
    switch (how) {
      case 'all':
        return Promise.all(running)
      case 'allSettled':
        return (await Promise.allSettled(running)).map((end) =>
          end.status === 'fulfilled' ? end.value : String(end.reason),
        )
      case 'race':
        return Promise.race(running)
      case 'any':
        return Promise.any(running)
    }
  })
  actor.stage.decided(place, JSON.stringify(outcome))
  return outcome
}

async function actRaceLoop(
  { name, chains }: Operation & { type: 'raceLoop' },
  actor: Actor,
  place: string,
): Promise<unknown> {
  const left = new Map(
    chains.map((chain, index) => [
      index,
      attempt(() => actChain(chain, actor, `${place}.${index}`)).then((outcome) => ({ index, outcome })),
    ]),
  )
  const order: unknown[] = []
  while (left.size > 0) {
    const { index, outcome } = await Promise.race(left.values())
    left.delete(index)
    actor.stage.decided(`${place}#${order.length}`, String(index))
    const winner = `${place}#${index}`
    const after = await runStep({ type: 'step', name, fails: 'never', work: index % 3 }, actor, winner)
    order.push([index, outcome, after])
  }
  return order
}

async function attempt(body: () => Promise<unknown>): Promise<unknown> {
  try {
    return await body()
  } catch (error) {
    const all = error instanceof AggregateError ? error.errors.map(String) : []
    return `caught ${String(error)} ${all.join(' ')}`
  }
}
