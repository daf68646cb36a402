/** Walks a random program once, then again from every prefix of its history, and tells what did not come out the same. */
import type { CheckpointRecord } from '../../../src/store/records.ts'
import { disagreements } from './accounts.ts'
import { Dice } from './dice.ts'
import { Facts } from './facts.ts'
import { beginnings, Outsiders } from './outsiders.ts'
import { act, generate, type Program, type Stage } from './programs.ts'
import { Recorder } from './recorder.ts'
import { anyDelay, type Body, BriskScheduler, turns, walkToEnd } from './rehearsal.ts'
import { codec } from './values.ts'

/** `instant`: awaits that are not durable take no turn of the event loop, as of a module that is loaded already. */
export type Detours = 'slow' | 'instant' | 'mixed'

export interface Performance {
  readonly entries: readonly CheckpointRecord[]
  /** What a crash would have left, in order. */
  readonly moments: readonly Facts[]
  /** Entries that were there before. */
  readonly prefix: number
  /** Awaits that are not durable have taken their time in it and in all passes whose history it went on from. */
  readonly slow: boolean
  readonly end: string
  /** Step bodies that ran, and how many entries were stored when they began. */
  readonly ran: readonly { readonly place: string; readonly key: string; readonly stored: number }[]
  readonly decided: readonly { readonly place: string; readonly branch: string; readonly stored: number }[]
}

const MODES = ['slow', 'instant', 'mixed'] as const
/** A program, and the keys of the signals that it deals with; without keys it has nothing to do with others. */
interface Script {
  readonly program: Program
  readonly keys: ReadonlySet<string> | undefined
}

function nothing(facts: Facts): Performance {
  return { entries: [], moments: [facts], prefix: 0, slow: true, end: '', ran: [], decided: [] }
}

/** Goes on from a moment of what another has done. */
async function perform(
  { program, keys }: Script,
  before: Performance,
  options: { readonly moment: number; readonly detours: Detours; readonly dice: Dice },
): Promise<Performance> {
  const { moment, detours, dice } = options
  const recorder = new Recorder(before.moments[moment] ?? new Facts(), anyDelay(dice))
  const prefix = recorder.entries.length
  const others = keys && new Outsiders(recorder, dice, keys)
  const ran: Performance['ran'][number][] = []
  const decided: Performance['decided'][number][] = []
  let ended = false
  const stage: Stage = {
    ran: (place, key) => ran.push({ place, key, stored: recorder.entries.length }),
    decided: (place, branch) => {
      // What is left of a body that has ended may go on while the rest of its history is walked: nobody sees it.
      if (!ended) decided.push({ place, branch, stored: recorder.entries.length })
    },
    detour: () => takeDetour(detours, dice),
    work: async (kind) => {
      if (kind === 1) await turns(1 + dice.below(3))
      if (kind > 1) await new Promise((resolve) => setTimeout(resolve, dice.below(kind + 1)))
    },
  }
  const body: Body = (ctx) => {
    ended = false
    return act(program, { ctx, stage }).finally(() => {
      ended = true
    })
  }
  void others?.begin()
  const surroundings = others === undefined ? {} : { outside: others, scheduler: new BriskScheduler() }
  const end = await walkToEnd(recorder, body, surroundings)
  others?.leave()
  const told =
    end.type === 'returned' ? codec.encode(end.value) : `${end.type} ${'error' in end ? String(end.error) : ''}`
  const slow = before.slow && detours === 'slow'
  return { entries: [...recorder.entries], moments: recorder.moments, prefix, slow, end: told, ran, decided }
}

export async function takeDetour(detours: Detours, dice: Dice): Promise<unknown> {
  if (detours === 'instant' || (detours === 'mixed' && dice.chance(0.4))) {
    // A module that is loaded already comes without a turn of the event loop.
    if (dice.chance(0.3)) return import('node:path')
    for (let hops = dice.below(6); hops > 0; hops -= 1) await Promise.resolve()
    return undefined
  }
  switch (dice.below(4)) {
    case 0:
      return turns(1 + dice.below(4))
    case 1:
      return crypto.subtle.digest('SHA-256', new Uint8Array(16))
    default:
      return new Promise((resolve) => setTimeout(resolve, 1 + dice.below(10)))
  }
}

/** What a crash at every point of a program's history, and at a second one after each, has done that it must not. */
export async function faults(seed: number, company: 'alone' | 'among others'): Promise<readonly string[]> {
  const dice = new Dice(seed)
  const keys = company === 'alone' ? undefined : new Set<string>()
  const script: Script = { program: generate(dice, keys), keys }
  const first = await perform(script, nothing(keys === undefined ? new Facts() : beginnings(dice, keys)), {
    moment: 0,
    detours: dice.pick('slow', 'slow', 'slow', 'mixed', 'instant'),
    dice,
  })
  const found = [...faultsOf(first)]
  for (const mode of MODES) found.push(...(await faultsOfReplay(script, first, { detours: mode, dice })))
  await Promise.all(
    first.moments.slice(0, -1).map(async (_, moment) => {
      const detours = dice.pick<Detours>('slow', 'slow', 'instant', 'mixed')
      const second = await perform(script, first, { moment, detours, dice })
      found.push(...faultsOf(second), ...faultsBetween(first, second))
      const again = dice.below(second.moments.length)
      const third = await perform(script, second, { moment: again, detours: dice.pick('slow', 'instant'), dice })
      found.push(
        ...faultsOf(third),
        ...faultsBetween(second, third),
        ...(await faultsOfReplay(script, third, { detours: dice.pick(...MODES), dice })),
      )
    }),
  )
  return found.map((fault) => `seed ${seed}: ${fault}`)
}

/** A replay of a whole history: nothing runs, and all comes out the same. */
async function faultsOfReplay(
  script: Script,
  original: Performance,
  options: { readonly detours: Detours; readonly dice: Dice },
): Promise<readonly string[]> {
  const replay = await perform(script, original, { moment: original.moments.length - 1, ...options })
  const found = faultsBetween(original, replay)
  return replay.end === original.end ? found : [...found, `a replay ended ${replay.end}, not ${original.end}`]
}

function faultsOf({ end, ran, moments }: Performance): readonly string[] {
  const last = moments[moments.length - 1]
  const found = last === undefined ? [] : [...disagreements(last)]
  if (!end.startsWith('{') && !end.startsWith('[') && !end.startsWith('threw Error: /')) found.push(end)
  const places = new Map<string, string>()
  for (const { place, key } of ran) {
    if ((places.get(key) ?? place) !== place) found.push(`${place} and ${places.get(key)} share ${key}`)
    places.set(key, place)
  }
  return found
}

/** `after` began with some prefix of the entries of `before`, as if the process had died then. */
function faultsBetween(before: Performance, after: Performance): readonly string[] {
  const found: string[] = []
  const { prefix } = after
  if (JSON.stringify(after.entries.slice(0, prefix)) !== JSON.stringify(before.entries.slice(0, prefix))) {
    found.push('the history changed')
  }
  const branches = new Map(after.decided.map(({ place, branch }) => [place, branch]))
  for (const { place, branch, stored } of before.decided) {
    const other = branches.get(place)
    if (stored <= prefix && other !== branch) found.push(`${place} took ${other}, not ${branch} (prefix ${prefix})`)
  }
  const recorded = new Set(
    after.entries.slice(0, prefix).flatMap(({ type, position }) => (type === 'outcome' ? [`run:${position}`] : [])),
  )
  for (const { place, key } of after.ran)
    if (recorded.has(key)) found.push(`${place} ran again as ${key} (prefix ${prefix})`)
  // A call that followed at once, and takes time on the next pass, may change places with one that is not recorded.
  if (before.slow) found.push(...changedKeys(before, after))
  return found
}

function changedKeys(before: Performance, after: Performance): readonly string[] {
  const found: string[] = []
  const begun = before.ran.filter(({ stored }) => stored <= after.prefix)
  const keys = new Map(begun.map(({ place, key }) => [place, key]))
  const places = new Map(begun.map(({ place, key }) => [key, place]))
  for (const { place, key } of after.ran) {
    if ((keys.get(place) ?? key) !== key)
      found.push(`${place} ran as ${keys.get(place)}, then as ${key} (prefix ${after.prefix})`)
    if ((places.get(key) ?? place) !== place)
      found.push(`${key} was ${places.get(key)}, then ${place} (prefix ${after.prefix})`)
  }
  return found
}
