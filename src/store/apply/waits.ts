/** What runs wait for, timers apart: signals, which are buffered if they come early, and the end of other runs. */
import type { AwaitedRun } from '../commands.ts'
import type { EncodedValue, WaitRecord } from '../records.ts'
import type { SignalWait, WaitRows } from './rows.ts'

export class Waits implements WaitRows {
  /** By run and position. */
  readonly #signals = new Map<string, Map<number, SignalWait>>()
  /** Keys of open waits: the run they belong to, and their positions. */
  readonly #open = new Map<string, { readonly runId: string; readonly positions: Set<number> }>()
  /** Signals that came before anyone waited for them. */
  protected readonly buffered = new Map<string, EncodedValue>()
  /** What each suspended run waits for, and who waits for a run. */
  readonly #children = new Map<string, readonly AwaitedRun[]>()
  readonly #parents = new Map<string, Set<string>>()

  // ── Signals ───────────────────────────────────────────────────────────────────────────────────────────────────

  at(runId: string, position: number): SignalWait | undefined {
    return this.#signals.get(runId)?.get(position)
  }

  /** The run that has open waits on the key. */
  holderOf(key: string): string | undefined {
    return this.#open.get(key)?.runId
  }

  /** The caller has checked that no other run waits on the key. A buffered signal is taken at once. */
  open(runId: string, position: number, key: string): SignalWait {
    const payload = this.buffered.get(key)
    if (this.buffered.delete(key)) this.onBuffered(key)
    const state = payload === undefined ? 'open' : 'signalled'
    return this.#put({ type: 'signal', runId, position, key, state, payload: payload ?? null })
  }

  expire(wait: SignalWait): SignalWait {
    return this.#put({ ...wait, state: 'expired' })
  }

  /** Gives the payload to every open wait on the key, and says whose they were. */
  deliver(key: string, payload: EncodedValue): string | undefined {
    const open = this.#open.get(key)
    if (open === undefined) return undefined
    for (const position of [...open.positions]) {
      const wait = this.at(open.runId, position)
      if (wait !== undefined) this.#put({ ...wait, state: 'signalled', payload })
    }
    return open.runId
  }

  /** True if it replaces a signal that nobody has waited for yet. */
  buffer(key: string, payload: EncodedValue): boolean {
    const replaced = this.buffered.has(key)
    this.buffered.set(key, payload)
    this.onBuffered(key)
    return replaced
  }

  /** True if a signal has come for a wait whose outcome is not recorded yet. */
  hasSignalled(runId: string): boolean {
    return [...(this.#signals.get(runId)?.values() ?? [])].some(({ state }) => state === 'signalled')
  }

  remove(runId: string, position: number): void {
    const wait = this.at(runId, position)
    if (wait === undefined) return
    this.#close(wait)
    const waits = this.#signals.get(runId)
    waits?.delete(position)
    if (waits?.size === 0) this.#signals.delete(runId)
    this.onChange(runId, position)
  }

  #put(wait: SignalWait): SignalWait {
    this.onChange(wait.runId, wait.position)
    return this.load(wait)
  }

  /** Puts a wait there as it is. */
  load(wait: SignalWait): SignalWait {
    const waits = this.#signals.get(wait.runId) ?? new Map<number, SignalWait>()
    this.#signals.set(wait.runId, waits.set(wait.position, Object.freeze(wait)))
    if (wait.state !== 'open') {
      this.#close(wait)
      return wait
    }
    const open = this.#open.get(wait.key) ?? { runId: wait.runId, positions: new Set<number>() }
    open.positions.add(wait.position)
    this.#open.set(wait.key, open)
    return wait
  }

  #close({ runId, key, position }: SignalWait): void {
    const open = this.#open.get(key)
    if (open?.runId !== runId) return
    open.positions.delete(position)
    if (open.positions.size === 0) this.#open.delete(key)
  }

  /** Puts a signal there that was buffered before. */
  loadBuffered(key: string, payload: EncodedValue): void {
    this.buffered.set(key, payload)
  }

  /** For a store that has to write down what was changed: the wait of a position was put or removed. */
  protected onChange(_runId: string, _position: number): void {}

  /** The signal of a key was buffered or taken. */
  protected onBuffered(_key: string): void {}

  // ── Children ──────────────────────────────────────────────────────────────────────────────────────────────────

  awaitRuns(runId: string, awaited: readonly AwaitedRun[]): void {
    this.forgetRuns(runId)
    if (awaited.length === 0) return
    this.#children.set(
      runId,
      awaited.map(({ position, runId: childId }) => ({ position, runId: childId })),
    )
    for (const { runId: childId } of awaited) {
      this.#parents.set(childId, (this.#parents.get(childId) ?? new Set()).add(runId))
    }
  }

  forgetRuns(runId: string): void {
    for (const { runId: childId } of this.#children.get(runId) ?? []) {
      const parents = this.#parents.get(childId)
      parents?.delete(runId)
      if (parents?.size === 0) this.#parents.delete(childId)
    }
    this.#children.delete(runId)
  }

  awaiting(childId: string): readonly string[] {
    return [...(this.#parents.get(childId) ?? [])]
  }

  // ── Of a run ──────────────────────────────────────────────────────────────────────────────────────────────────

  removeAll(runId: string): void {
    for (const position of [...(this.#signals.get(runId)?.keys() ?? [])]) this.remove(runId, position)
    this.forgetRuns(runId)
  }

  /** In order of position. */
  of(runId: string): readonly WaitRecord[] {
    const signals: readonly WaitRecord[] = [...(this.#signals.get(runId)?.values() ?? [])]
    const children = (this.#children.get(runId) ?? []).map(
      ({ position, runId: childId }): WaitRecord => ({ type: 'child', runId, position, childId }),
    )
    return [...signals, ...children].toSorted((a, b) => a.position - b.position)
  }
}
