/** Who else acts while a random program runs: others that send signals, children that end, a run that lets go of a key. */
import type { Ending } from '../../../src/store/records.ts'
import type { Dice } from './dice.ts'
import { Facts } from './facts.ts'
import type { Recorder } from './recorder.ts'
import { anyDelay, type Outside } from './rehearsal.ts'
import { codec } from './values.ts'

/** What was there before a program of these keys began. */
export function beginnings(dice: Dice, keys: ReadonlySet<string>): Facts {
  const facts = new Facts()
  for (const key of keys) if (dice.chance(0.2)) facts.taken.add(key)
  const child = { parentId: null, ending: null }
  facts.children.set('shared', { ...child, definition: 'shared', input: codec.encode('input') })
  facts.children.set('mismatched', { ...child, definition: 'mismatched', input: codec.encode('another') })
  return facts
}

export class Outsiders implements Outside {
  readonly #recorder: Recorder
  readonly #dice: Dice
  readonly #keys: readonly string[]
  #gone = false

  constructor(recorder: Recorder, dice: Dice, keys: ReadonlySet<string>) {
    this.#recorder = recorder
    this.#dice = dice
    this.#keys = [...keys]
  }

  /** They act while the run is in memory, too. */
  async begin(): Promise<void> {
    while (!this.#gone) {
      await anyDelay(this.#dice)()
      if (!this.#gone && this.#dice.chance(0.2)) await this.act(false)
    }
  }

  leave(): void {
    this.#gone = true
  }

  async act(must: boolean): Promise<boolean> {
    if (!must && this.#dice.chance(0.4)) return false
    const { facts } = this.#recorder
    const acts: (() => void)[] = []
    for (const { key } of facts.openWaits()) acts.push(() => this.#signal(key))
    for (const [id, { definition, ending }] of facts.children) {
      if (ending === null)
        acts.push(() => void this.#recorder.change(() => facts.endChild(id, endingOf(id, definition))))
    }
    if (!must) {
      for (const key of facts.taken) acts.push(() => void this.#recorder.change(() => facts.taken.delete(key)))
      // Before anybody waits for it.
      const early = this.#keys[this.#dice.below(this.#keys.length)]
      if (early !== undefined && this.#dice.chance(0.3)) acts.push(() => this.#signal(early))
    }
    const act = acts[this.#dice.below(acts.length)]
    act?.()
    return act !== undefined
  }

  #signal(key: string): void {
    const { facts } = this.#recorder
    // No two are alike, and they are more than JSON.
    const payload = codec.encode({ number: facts.sent.length, at: new Date(facts.sent.length) })
    this.#recorder.change(() => facts.signal(key, payload))
  }
}

export function endingOf(id: string, definition: string): Ending | 'removed' {
  switch (definition.split(':')[0]) {
    case 'bad':
      return { status: 'ERROR', failure: { kind: 'error', error: codec.encode(new RangeError(`${id} is bad`)) } }
    case 'dead':
      return { status: 'DEAD', failure: { kind: 'crashed', error: null } }
    case 'cancelled':
      return { status: 'CANCELLED', failure: { kind: 'timeout', error: null } }
    case 'removed':
      return 'removed'
    default:
      return { status: 'SUCCESS', output: codec.encode([id, undefined]) }
  }
}
