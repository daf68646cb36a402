/**
 * One pass of a workflow's body over its history: recorded outcomes are delivered in the order of the record, then
 * execution is live and every outcome is recorded before it is delivered.
 *
 * One loop moves a pass. It delivers one outcome at a time, live as on replay, and lets the body use up all its
 * microtasks (a turn of the event loop) before it looks again. So the calls that follow from a delivery are made
 * before the next one, and `Promise.all` over chains, `Promise.race` and loops over races walk the same way each time.
 *
 * States: replaying (records are left: nothing begins, so a pass that diverges has no effects) -> live -> over. A pass
 * that is over never lets a call settle: a body that is suspended, cancelled or diverged simply stops where it is.
 */
import type { Clock, EpochMs, Timer } from '../../core/clock.ts'
import type { Codec } from '../../core/codec.ts'
import type { EngineEvent } from '../../core/engine-events.ts'
import { ClaimLostError, NestedDurableCallError, type NonDeterminismError } from '../../core/errors.ts'
import { invariant } from '../../core/invariant.ts'
import type { Random } from '../../core/random.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import type { EncodedValue, NewCheckpoint } from '../../store/records.ts'
import { Call, type CallRequest, callSite, describeCall } from './call.ts'
import type { History, RecordedOutcome } from './history.ts'
import { Journal, type LiveOutcome, type Store } from './journal.ts'
import { Positions } from './positions.ts'
import { enclosingStep } from './step-scope.ts'

export interface PassOptions {
  readonly runId: string
  readonly history: History
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly random: Random
  readonly codec: Codec
  /** Stores entries under the claim; false: the claim is lost. Rejects if the store refuses or is closed. */
  readonly store: Store
  readonly onEvent: (event: EngineEvent) => void
}

export type PassEnd =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'threw'; readonly error: unknown }
  | { readonly type: 'suspended'; readonly wakeAt: EpochMs; readonly entries: readonly NewCheckpoint[] }
  | { readonly type: 'diverged'; readonly error: NonDeterminismError }
  | { readonly type: 'aborted'; readonly reason: unknown }
  /** The store refused a record, or was closed. */
  | { readonly type: 'failed'; readonly error: unknown }

/** Work of a call that goes on (a step's body, a pause between its attempts) and can be told to stop. */
export interface Running {
  abort(reason: unknown): void
}

/** A run whose next timer is further away than this is suspended. */
const LONGEST_WAIT_IN_MEMORY_MS = 1_000
/** How long a replay waits, in real time, for calls that come after an await that is not durable. */
const PATIENCE_MS = 5_000
/** The same when a call is there already, but none that the history has at its position. */
const PATIENCE_WITH_MISMATCH_MS = 1_000

export class Pass {
  readonly runId: string
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly random: Random
  readonly codec: Codec
  readonly history: History
  readonly #onEvent: (event: EngineEvent) => void
  readonly #positions: Positions
  readonly #journal: Journal
  readonly #running = new Set<Running>()
  readonly #timers = new Map<number, { readonly wakeAt: EpochMs; readonly timer: Timer }>()
  /** Calls with a position that may have to be begun, in order of position. */
  #unbegun: Call[] = []
  /** Index of the recorded outcome to be delivered next. */
  #next = 0
  /** True while the body runs on what follows from the last delivery (or from its start). */
  #inTurn = false
  /** The body has run since the loop last looked, and may still have microtasks. */
  #moved = false
  #poked = false
  #wake: (() => void) | undefined
  #end: PassEnd | undefined
  #aborted: { readonly reason: unknown; patient: boolean } | undefined
  #over = false
  #userCode = 0

  constructor(options: PassOptions) {
    this.runId = options.runId
    this.clock = options.clock
    this.scheduler = options.scheduler
    this.random = options.random
    this.codec = options.codec
    this.history = options.history
    this.#onEvent = options.onEvent
    this.#positions = new Positions(options.runId, options.history)
    this.#journal = new Journal(options.history, options.store)
  }

  /** Runs the body until it ends, is suspended, diverges, or the pass is aborted. Never rejects. */
  async walk(body: () => Promise<unknown>): Promise<PassEnd> {
    this.#inTurn = true
    this.#moved = true
    body().then(
      (value) => this.#bodyEnded({ type: 'returned', value }),
      (error: unknown) => this.#bodyEnded({ type: 'threw', error }),
    )
    const end = await this.#untilEnd()
    this.#close(end)
    return end
  }

  /** A durable call of the body. Throws NestedDurableCallError when a step's body makes it. */
  call(request: CallRequest): Promise<unknown> {
    const enclosing = enclosingStep(this.runId)
    if (enclosing !== undefined) {
      throw new NestedDurableCallError({ runId: this.runId, call: describeCall(request), step: enclosing.step })
    }
    const call = new Call(request)
    if (this.#over) {
      const site = callSite(request.method)
      this.#onEvent({ type: 'call.dropped', runId: this.runId, call: describeCall(call), site })
      return call.promise
    }
    const taken = this.#positions.add(call, this.#inTurn, this.#nextRecorded())
    if (taken === 'taken') this.#unbegun.push(call)
    else call.site = callSite(request.method)
    if (taken === 'diverged') this.#end ??= { type: 'diverged', error: this.#positions.divergence(call) }
    this.#moved = true
    this.poke()
    return call.promise
  }

  /** True while recorded outcomes are left to deliver: what the body does now it has done before. */
  get replaying(): boolean {
    return this.#nextRecorded() !== undefined
  }

  /** True once the pass has ended or been told to: nothing that ends now is recorded. */
  get over(): boolean {
    return this.#over || this.#aborted !== undefined
  }

  /** What moves a pass that stands still: its own loop, a user's function, or something it waits for. */
  get standing(): 'moving' | 'userCode' | 'waiting' {
    if (this.#wake === undefined && !this.#over) return 'moving'
    const bodyAwaitsAnythingElse = this.#positions.open.size === 0 || this.replaying
    return this.#userCode > 0 || bodyAwaitsAnythingElse ? 'userCode' : 'waiting'
  }

  /**
   * Ends the pass: no further delivery, running steps are aborted. With `patient`, the pass is over only when they
   * have ended; otherwise at once. Aborting again without patience cuts the waiting short.
   */
  abort(reason: unknown, options: { readonly patient: boolean }): void {
    if (this.#over) return
    if (this.#aborted === undefined) {
      this.#aborted = { reason, patient: options.patient }
      for (const running of this.#running) running.abort(reason)
    } else if (!options.patient) {
      this.#aborted.patient = false
    }
    this.poke()
  }

  // ── For the verbs (step.ts, sleep.ts, now.ts) ────────────────────────────────────────────────────────────────

  /** Enters work that `abort` must be able to stop; returns the way out. */
  enter(running: Running): () => void {
    this.#running.add(running)
    return () => {
      this.#running.delete(running)
      this.poke()
    }
  }

  /** Runs a user's function, which may take any time. */
  async userCode<T>(body: () => Promise<T>): Promise<T> {
    this.#userCode += 1
    try {
      return await body()
    } finally {
      this.#userCode -= 1
    }
  }

  /** Records a call's outcome; it is delivered when its turn comes. Never rejects. */
  async record(call: Call, outcome: { readonly failed: boolean; readonly value: EncodedValue }, attempts = 1): Promise<void> {
    if (this.over) return this.discard(call)
    const { count: calls, strays } = this.#positions
    await this.#keepingClaim(this.#journal.record({ call, ...outcome, calls, strays }, attempts))
    this.poke()
  }

  /** Tells of an outcome that comes too late to be recorded. */
  discard(call: Call): void {
    this.#onEvent({ type: 'outcome.discarded', runId: this.runId, step: call.name })
  }

  /** Waits for an instant on behalf of a call, and records that it does unless the history says so already. */
  wait(call: Call, wakeAt: EpochMs, onWake: () => void): void {
    const fire = (): void => {
      this.#timers.delete(call.position)
      onWake()
    }
    this.#timers.set(call.position, { wakeAt, timer: this.clock.at(wakeAt, fire) })
    if (this.history.timers.has(call.position)) return
    void this.#keepingClaim(this.#journal.timer(call, String(wakeAt), this.#positions.count))
  }

  /** Makes the loop look again. */
  poke(): void {
    this.#poked = true
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  // ── The loop ─────────────────────────────────────────────────────────────────────────────────────────────────

  async #untilEnd(): Promise<PassEnd> {
    for (;;) {
      this.#poked = false
      if (this.#moved) await this.#drain()
      const end = this.#ended()
      if (end !== undefined) return end
      if (this.#aborted !== undefined) await this.#untilPoked()
      else if (this.replaying) await this.#replay()
      else {
        const suspended = await this.#live()
        if (suspended !== undefined) return suspended
      }
    }
  }

  async #drain(): Promise<void> {
    await this.scheduler.turn()
    this.#inTurn = false
    this.#moved = false
  }

  #ended(): PassEnd | undefined {
    if (this.#end !== undefined) return this.#end
    if (this.#aborted === undefined) return undefined
    const { patient, reason } = this.#aborted
    return patient && this.#running.size > 0 ? undefined : { type: 'aborted', reason }
  }

  async #replay(): Promise<void> {
    const next = this.#nextRecorded()
    invariant(next !== undefined, 'a replay has a next outcome')
    const matched = this.#admitHeld(next)
    if (this.#positions.count < next.calls) {
      await this.#untilPoked(matched ? PATIENCE_MS : PATIENCE_WITH_MISMATCH_MS)
      return
    }
    const call = this.#positions.close(next.position)
    invariant(call !== undefined, 'an outcome is recorded only of a call that was made')
    this.#next += 1
    this.#deliver(call, next)
  }

  /** Begins what is new and delivers what is stored; resolves to the end of a pass that has only timers to wait for. */
  async #live(): Promise<PassEnd | undefined> {
    if (!this.#admitHeld(undefined)) return { type: 'diverged', error: this.#positions.divergence() }
    this.#beginCalls()
    const head = this.#journal.head
    if (head !== undefined) {
      await this.#deliverHead(head)
      return undefined
    }
    const suspended = this.#suspension()
    if (suspended === undefined) await this.#untilPoked()
    return suspended
  }

  #admitHeld(next: RecordedOutcome | undefined): boolean {
    const held = this.#positions.heldCalls
    if (held === 0) return true
    const before = this.#positions.count
    const matched = this.#positions.admitHeld(next)
    for (const [position, call] of this.#positions.open) if (position >= before) this.#unbegun.push(call)
    return matched
  }

  #beginCalls(): void {
    const calls = this.#unbegun
    if (calls.length === 0) return
    this.#unbegun = []
    for (const call of calls) {
      if (this.#positions.open.get(call.position) === call) call.begin(call)
    }
  }

  async #deliverHead(head: LiveOutcome): Promise<void> {
    const { count, strays } = this.#positions
    if (head.strays !== strays && head.calls !== count) {
      await this.#keepingClaim(this.#journal.confirmHead(count, strays))
      return
    }
    this.#journal.delivered(count)
    this.#positions.close(head.call.position)
    this.#deliver(head.call, head)
  }

  #deliver(call: Call, outcome: { readonly failed: boolean; readonly value: EncodedValue }): void {
    this.#inTurn = true
    this.#moved = true
    call.settle(outcome.failed, this.codec.decode(outcome.value))
  }

  #suspension(): PassEnd | undefined {
    const onlyTimers = this.#timers.size > 0 && this.#timers.size === this.#positions.open.size
    if (!onlyTimers || this.#running.size > 0 || this.#journal.waiting > 0) return undefined
    let wakeAt = Number.POSITIVE_INFINITY
    for (const timer of this.#timers.values()) wakeAt = Math.min(wakeAt, timer.wakeAt)
    if (wakeAt - this.clock.now() <= LONGEST_WAIT_IN_MEMORY_MS) return undefined
    return { type: 'suspended', wakeAt, entries: this.#journal.unconfirmed(this.#positions.count) }
  }

  /** Waits until something happens; with a bound, the pass has diverged when nothing does. */
  async #untilPoked(patienceMs?: number): Promise<void> {
    if (this.#poked) return
    const bound =
      patienceMs === undefined
        ? undefined
        : this.scheduler.after(patienceMs, () => {
            this.#end ??= { type: 'diverged', error: this.#positions.divergence() }
            this.poke()
          })
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    bound?.cancel()
  }

  // ── Endings ──────────────────────────────────────────────────────────────────────────────────────────────────

  #bodyEnded(end: PassEnd): void {
    const diverged = this.replaying || this.history.timers.size > 0
    const error = diverged ? this.#positions.divergenceOfEnd(this.#next) : undefined
    this.#end ??= error === undefined ? end : { type: 'diverged', error }
    this.poke()
  }

  #close(end: PassEnd): void {
    this.#over = true
    for (const { timer } of this.#timers.values()) timer.cancel()
    if (this.#running.size === 0) return
    const reason = end.type === 'aborted' ? end.reason : new DOMException('The run is over.', 'AbortError')
    for (const running of this.#running) running.abort(reason)
  }

  /** A record that could not be made under the claim ends the pass: nothing after it may look as if it had been. */
  async #keepingClaim(stored: Promise<boolean>): Promise<void> {
    try {
      if (!(await stored)) this.abort(new ClaimLostError({ runId: this.runId }), { patient: false })
    } catch (error) {
      this.#end ??= { type: 'failed', error }
      this.poke()
    }
  }

  #nextRecorded(): RecordedOutcome | undefined {
    return this.history.outcomes[this.#next]
  }
}
