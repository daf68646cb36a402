/** What random programs have to do with others: signals, children, and what steps stage. */
import type { StepEffects, WorkflowContext } from '../../../src/api/context.ts'
import type { Dice } from './dice.ts'

/** How a child ends, which its name tells, or what its start is refused for. */
const CHILD_FATES = [
  'ok',
  'ok',
  'ok',
  'bad',
  'dead',
  'cancelled',
  'removed',
  'refused',
  'shared',
  'mismatched',
  'held',
] as const
export type Fate = (typeof CHILD_FATES)[number]

export type Conversation =
  | { readonly type: 'wait'; readonly key: string; readonly timeoutMs: number | undefined }
  /** A wait that nobody awaits. */
  | { readonly type: 'deaf'; readonly key: string }
  | { readonly type: 'send'; readonly key: string }
  | {
      readonly type: 'child'
      readonly name: string
      readonly fate: Fate
      readonly results: 'none' | 'one' | 'two'
    }

export function generateConversation(dice: Dice, name: string, keys: Set<string>): Conversation {
  const kind = dice.below(10)
  if (kind < 4) {
    keys.add(name)
    return { type: 'wait', key: name, timeoutMs: dice.pick(undefined, 0, 20, 400, 5_000, 3_600_000) }
  }
  if (kind === 4) {
    keys.add(name)
    return { type: 'deaf', key: name }
  }
  if (kind === 5) return { type: 'send', key: dice.pick(name, ...keys) }
  const fate = dice.pick<Fate>(...CHILD_FATES)
  return { type: 'child', name: `${fate}:${name}`, fate, results: dice.pick('one', 'one', 'two', 'none') }
}

export async function converse(
  conversation: Conversation,
  ctx: WorkflowContext<unknown>,
  place: string,
): Promise<unknown> {
  switch (conversation.type) {
    case 'wait': {
      const { key, timeoutMs } = conversation
      return ctx.waitForSignal(key, timeoutMs === undefined ? {} : { timeout: timeoutMs })
    }
    case 'deaf':
      void ctx.waitForSignal(conversation.key)
      return ctx.step(conversation.key, () => 'deaf')
    case 'send':
      return ctx.sendSignal(conversation.key, { from: place })
    case 'child': {
      const { name, fate, results } = conversation
      const child = await ctx.start(name, 'input', OPTIONS[fate] ?? {})
      if (results === 'none') return child.newlySubmitted
      const awaited = results === 'one' ? [child.result()] : [child.result(), child.result()]
      return [child.newlySubmitted, ...(await Promise.all(awaited))]
    }
  }
}

/** `shared` and `mismatched` are there already, the latter with another input; nobody else has the id `held` any more. */
const OPTIONS: { readonly [F in Fate]?: object } = {
  shared: { id: 'shared' },
  mismatched: { id: 'mismatched' },
  held: { dedupId: 'held', queue: 'q' },
}

export async function stageEffects(effects: StepEffects, place: string, attempt: number): Promise<void> {
  effects.put('key', 'not the last')
  effects.put('key', stagedIn(place, attempt))
  effects.sendSignal('staged', stagedIn(place, attempt))
  await effects.start('staged', stagedIn(place, attempt))
}

export function stagedIn(place: string, attempt: number): string {
  return `${place} staged in ${attempt}`
}
