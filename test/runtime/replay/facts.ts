/** What a model store knows of one run and of what the run deals with, and how its commands change that. */
import type { Action, Effect, NewCheckpoint, NewRun, PerformOutcome, WaitOutcome } from '../../../src/store/commands.ts'
import type { CheckpointRecord, EncodedValue, Ending } from '../../../src/store/records.ts'
import { codec } from './values.ts'

export interface ModelWait {
  readonly key: string
  readonly state: 'open' | 'signalled' | 'expired'
  readonly payload: EncodedValue | null
}

export interface ModelChild {
  readonly definition: string
  readonly input: EncodedValue
  readonly parentId: string | null
  /** null: it goes on. */
  readonly ending: Ending | null
}

/** A signal that was sent, and what became of it. */
export interface Sent {
  readonly key: string
  readonly payload: EncodedValue
  readonly outcome: 'delivered' | 'buffered' | 'replaced'
  /** Of the run's call, if it was the run that sent it. */
  readonly position: number | null
}

export class Facts {
  readonly entries: CheckpointRecord[] = []
  readonly waits = new Map<number, ModelWait>()
  readonly buffer = new Map<string, EncodedValue>()
  readonly children = new Map<string, ModelChild>()
  /** Keys that another run waits on. */
  readonly taken = new Set<string>()
  readonly sent: Sent[] = []
  /** What each wait was told, whatever the run made of it. */
  readonly told = new Map<number, EncodedValue | 'expired'>()
  /** Effects, with the position of the step whose record brought them. */
  readonly applied: { readonly position: number; readonly effect: Effect }[] = []
  /** Runs that were removed after their end. */
  readonly removed = new Set<string>()

  static of(entries: readonly CheckpointRecord[]): Facts {
    const facts = new Facts()
    facts.entries.push(...entries)
    return facts
  }

  /** What a crash at this moment leaves. */
  copy(): Facts {
    const copy = Facts.of(this.entries)
    for (const [key, wait] of this.waits) copy.waits.set(key, wait)
    for (const [key, payload] of this.buffer) copy.buffer.set(key, payload)
    for (const [id, child] of this.children) copy.children.set(id, child)
    for (const key of this.taken) copy.taken.add(key)
    for (const [position, told] of this.told) copy.told.set(position, told)
    for (const id of this.removed) copy.removed.add(id)
    copy.sent.push(...this.sent)
    copy.applied.push(...this.applied)
    return copy
  }

  record(entries: readonly NewCheckpoint[]): void {
    for (const { effects, ...entry } of entries) {
      if (entry.seq !== this.entries.length) throw new Error(`entry ${entry.seq} after ${this.entries.length} entries`)
      this.entries.push({ ...entry, recordedAt: 0 })
      if (entry.type === 'outcome') this.waits.delete(entry.position)
      for (const effect of effects ?? []) this.#apply(entry.position, effect)
    }
  }

  perform(entry: NewCheckpoint, action: Action): PerformOutcome {
    if (action.type === 'signal') return this.#performed(entry, this.signal(action.key, action.payload, entry.position))
    const { run } = action
    const existing = this.children.get(run.id)
    if (existing !== undefined && existing.input !== run.input) {
      return { type: 'refused', refusal: { type: 'mismatch', id: run.id, definition: existing.definition } }
    }
    if (run.dedup !== null) {
      const refusal = { type: 'deduplicated', id: run.id, queue: 'q', dedupId: run.dedup.id, holder: 'holder' } as const
      return { type: 'refused', refusal }
    }
    this.#start(run)
    return this.#performed(entry, { id: run.id, created: existing === undefined })
  }

  wait(position: number, key: string, entries: readonly NewCheckpoint[]): WaitOutcome {
    const wait = this.waits.get(position)
    if (wait === undefined && this.taken.has(key)) return { type: 'taken', holder: 'another' }
    this.record(entries)
    if (wait !== undefined) return outcomeOf(wait)
    const payload = this.buffer.get(key)
    this.buffer.delete(key)
    this.waits.set(position, { key, state: 'open', payload: null })
    if (payload !== undefined) this.#resolve(position, payload)
    return this.#look(position)
  }

  expire(position: number): WaitOutcome {
    const wait = this.waits.get(position)
    if (wait?.state === 'open') {
      this.waits.set(position, { ...wait, state: 'expired' })
      this.told.set(position, 'expired')
    }
    return this.#look(position)
  }

  signal(key: string, payload: EncodedValue, position: number | null = null): Sent['outcome'] {
    const open = this.openWaits().filter((wait) => wait.key === key)
    const outcome = open.length > 0 ? 'delivered' : this.buffer.has(key) ? 'replaced' : 'buffered'
    for (const wait of open) this.#resolve(wait.position, payload)
    if (open.length === 0) this.buffer.set(key, payload)
    this.sent.push({ key, payload, outcome, position })
    return outcome
  }

  endChild(id: string, ending: Ending | 'removed'): void {
    const child = this.children.get(id)
    if (child === undefined) throw new Error(`there is no child ${id}`)
    if (ending === 'removed') {
      this.children.delete(id)
      this.removed.add(id)
    } else this.children.set(id, { ...child, ending })
  }

  ending(id: string): Ending | 'missing' | undefined {
    const child = this.children.get(id)
    return child === undefined ? 'missing' : (child.ending ?? undefined)
  }

  openWaits(): readonly { readonly position: number; readonly key: string }[] {
    return [...this.waits].flatMap(([position, { key, state }]) => (state === 'open' ? [{ position, key }] : []))
  }

  #look(position: number): WaitOutcome {
    const wait = this.waits.get(position)
    if (wait === undefined) throw new Error(`there is no wait at ${position}`)
    return outcomeOf(wait)
  }

  #resolve(position: number, payload: EncodedValue): void {
    const wait = this.waits.get(position)
    if (wait === undefined) throw new Error(`there is no wait at ${position}`)
    this.waits.set(position, { ...wait, state: 'signalled', payload })
    this.told.set(position, payload)
  }

  #performed(entry: NewCheckpoint, value: unknown): PerformOutcome {
    const text = codec.encode(value)
    this.record([{ ...entry, value: text }])
    return { type: 'performed', value: text, cancelRequested: false }
  }

  #start({ id, definition, input, parentId }: NewRun): void {
    if (!this.children.has(id)) this.children.set(id, { definition, input, parentId, ending: null })
  }

  #apply(position: number, effect: Effect): void {
    this.applied.push({ position, effect })
    if (effect.type === 'start') this.#start(effect.run)
    else if (effect.type === 'signal') this.signal(effect.key, effect.payload)
  }
}

function outcomeOf({ state, payload }: ModelWait): WaitOutcome {
  if (state === 'open') return { type: 'waiting' }
  return state === 'signalled' && payload !== null ? { type: 'signalled', payload } : { type: 'expired' }
}
