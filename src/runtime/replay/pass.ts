/**
 * One pass of a workflow's body over its history: recorded events (outcomes of durable calls, arrivals of stray ones)
 * happen again in the order of the record, then execution is live and every event is recorded before it happens.
 *
 * One loop moves a pass. It lets one event happen at a time, live as on replay, each at the start of a turn of the event
 * loop, and the body use up all microtasks that follow before it looks again. So the calls that follow from an event are
 * made before the next one, and `Promise.all` over chains, `Promise.race` and loops over races walk the same way each
 * time.
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
import type { History } from './history.ts'
import { Journal, type LiveEvent, type Store } from './journal.ts'
import { Positions } from './positions.ts'
import type { Running } from './running.ts'
import { enclosingStep, insideBody, lineageHere, nextLineage } from './scope.ts'

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

/** A run whose next timer is further away than this is suspended. */
const LONGEST_WAIT_IN_MEMORY_MS = 1_000
// A replay waits 5 s of real time for calls that come after an await that is not durable, in spans: a loop that is
// blocked for as long uses up one of them, and not what the await would have needed.
const SPAN_MS = 250
const PATIENCE_SPANS = 20
/** So many of them for the very call of the record; after that, one of the same name from another chain will do. */
const LINEAGE_SPANS = 4

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
  /** Tells this pass from others in the context of asynchronous code. */
  readonly #identity = Symbol('pass')
  /** Calls with a position that may have to be begun, in order of position. */
  #unbegun: Call[] = []
  /** True while the body runs on what follows from the last event (or from its start). */
  #inTurn = false
  #afterTurn: (() => void)[] = []
  /** Spans for which calls have been waited for since the last event. */
  #waited = 0
  /** Calls with a position when the body was moved last. */
  #callsBefore = 0
  #poked = false
  #wake: (() => void) | undefined
  #end: PassEnd | undefined
  /** How the body ended. */
  #bodyEnd: PassEnd | undefined
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
    this.#journal = new Journal(options.history, this.#positions.lineages, options.store)
  }

  /** Runs the body until it ends, is suspended, diverges, or the pass is aborted. Never rejects. */
  async walk(body: () => Promise<unknown>): Promise<PassEnd> {
    await this.#move(() => {
      insideBody(this.#identity, body).then(
        (value) => this.#bodyEnded({ type: 'returned', value }),
        (error: unknown) => this.#bodyEnded({ type: 'threw', error }),
      )
    })
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
    const call = new Call(request, nextLineage(this.#identity, request.verb, request.name))
    if (this.#over) {
      const site = callSite(request.method)
      this.#onEvent({ type: 'call.dropped', runId: this.runId, call: describeCall(call), site })
      return call.promise
    }
    if (this.#positions.add(call, this.#inTurn)) this.#unbegun.push(call)
    else call.site = callSite(request.method)
    this.poke()
    return call.promise
  }

  /** Tells in which chain of the body the caller is (scope.ts). */
  get lineage(): number {
    return lineageHere(this.#identity)
  }

  /** True while what the body does now it has done before. */
  get replaying(): boolean {
    return this.#positions.replaying
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
    if (running.isUserCode) this.#userCode += 1
    return () => {
      if (!this.#running.delete(running)) return
      if (running.isUserCode) this.#userCode -= 1
      // Only who waits for the running to end has anything to do now.
      if (this.#aborted !== undefined) this.poke()
    }
  }

  /** Records a call's outcome; it is delivered when its turn comes. Never rejects. */
  record(call: Call, outcome: { readonly failed: boolean; readonly value: EncodedValue }, attempts = 1): void {
    // What is recorded within a turn could not tell how many calls its event comes after.
    if (this.#inTurn) this.#afterTurn.push(() => this.record(call, outcome, attempts))
    else if (this.over) this.discard(call)
    else void this.#keepingClaim(this.#journal.outcome(call, outcome.failed, outcome.value, attempts))
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
    void this.#keepingClaim(this.#journal.timer(call, String(wakeAt)))
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
      const end = this.#ended() ?? (await this.#step())
      if (end !== undefined) return end
    }
  }

  #ended(): PassEnd | undefined {
    if (this.#end !== undefined) return this.#end
    if (this.#aborted !== undefined) {
      const { patient, reason } = this.#aborted
      return patient && this.#running.size > 0 ? undefined : { type: 'aborted', reason }
    }
    return this.replaying ? undefined : this.#bodyEnd
  }

  /** One move of the pass, or a wait for what could move it. */
  #step(): PassEnd | undefined | Promise<PassEnd | undefined> {
    if (this.#aborted !== undefined) return this.#untilPoked()
    return this.replaying ? this.#replay() : this.#live()
  }

  get #lenient(): boolean {
    return this.#waited >= LINEAGE_SPANS
  }

  #replay(): PassEnd | undefined | Promise<PassEnd | undefined> {
    this.#unbegun.push(...this.#positions.admit(this.#lenient))
    if (!this.replaying) return undefined
    const call = this.#callOfNext()
    if (call !== undefined) return this.#happensAgain(call)
    // A body that has ended calls nothing more. It may have ended a little earlier than it did, but not without a call.
    if (this.#bodyEnd !== undefined && !this.#positions.lacksCall) return this.#bodyEnd
    const inVain = !this.#positions.hasStrays && (this.#bodyEnd !== undefined || this.#positions.mismatch !== undefined)
    return inVain ? this.#diverged() : this.#untilCalled()
  }

  /** The call of the next recorded event, if it is there and so are the calls that come before the event. */
  #callOfNext(): Call | undefined {
    const { next } = this.#positions
    if (next === undefined || this.#positions.count < next.calls) return undefined
    return next.type === 'arrival'
      ? this.#positions.arrived(next, this.#lenient)
      : this.#positions.open.get(next.position)
  }

  #happensAgain(call: Call): undefined | Promise<undefined> {
    const { next } = this.#positions
    invariant(next !== undefined, 'a call of the next event is one of an event')
    const again = (): void => {
      this.#waited = 0
      this.#positions.happened()
      this.#journal.happensAgain(next)
    }
    return this.#happen(next.type === 'arrival' ? { type: 'arrival', call } : { ...next, call }, again)
  }

  /** Lets the next stored event happen, or begins what is new; resolves to the end of a pass that is suspended. */
  #live(): PassEnd | undefined | Promise<PassEnd | undefined> {
    for (const call of this.#positions.release()) void this.#keepingClaim(this.#journal.arrival(call))
    const { head } = this.#journal
    if (head !== undefined) return this.#happen(head, () => this.#journal.happens())
    if (this.#unbegun.length > 0) return this.#beginCalls()
    return this.#suspension() ?? this.#untilPoked()
  }

  /** `tell` is called when it does happen. */
  #happen(event: LiveEvent, tell: () => void): undefined | Promise<undefined> {
    if (event.type === 'outcome') return this.#move(() => this.#deliver(event, tell))
    tell()
    this.#positions.take(event.call)
    this.#unbegun.push(event.call)
    return undefined
  }

  #deliver({ call, failed, value }: LiveEvent & { readonly type: 'outcome' }, tell: () => void): void {
    // Of what the turn has brought meanwhile, an end of the pass comes first.
    if (this.#end !== undefined || this.#aborted !== undefined) return
    tell()
    this.#positions.close(call.position)
    try {
      call.settle(failed, this.codec.decode(value))
    } catch (error) {
      this.#end = { type: 'failed', error }
    }
  }

  #beginCalls(): undefined | Promise<undefined> {
    const calls = this.#unbegun.filter((call) => this.#positions.open.get(call.position) === call)
    this.#unbegun = []
    if (calls.length === 0) return undefined
    if (this.#journal.confirmed) return this.#begin(calls)
    return this.#keepingClaim(this.#journal.confirm()).then(() => this.#begin(calls))
  }

  #begin(calls: readonly Call[]): undefined {
    if (this.over || this.#ended() !== undefined) return
    // Sleeps that ended while nobody had the run end in the order of their instants, not of their positions.
    const wakeAt = ({ position }: Call): EpochMs => this.history.timers.get(position) ?? Number.MAX_SAFE_INTEGER
    for (const call of calls.toSorted((a, b) => wakeAt(a) - wakeAt(b))) call.begin(call)
  }

  /**
   * Moves the body at the start of a turn of the event loop, and resolves when it has used up the microtasks that
   * follow: what it calls in them, it calls on every pass.
   */
  async #move(cause: () => void): Promise<undefined> {
    await this.scheduler.turn()
    this.#inTurn = true
    this.#waited = 0
    this.#callsBefore = this.#positions.count
    const drained = new Promise<void>((resolve) => this.scheduler.afterMicrotasks(resolve))
    cause()
    await drained
    this.#inTurn = false
    const waiting = this.#afterTurn
    this.#afterTurn = []
    for (const resume of waiting) resume()
  }

  #suspension(): PassEnd | undefined | Promise<undefined> {
    // A step's body that ignored its timeout may still run; its outcome is recorded, and nothing waits for it.
    const onlyTimers = this.#timers.size > 0 && this.#timers.size === this.#positions.open.size
    if (!onlyTimers || this.#journal.waiting > 0) return undefined
    let wakeAt = Number.POSITIVE_INFINITY
    for (const timer of this.#timers.values()) wakeAt = Math.min(wakeAt, timer.wakeAt)
    if (wakeAt - this.clock.now() <= LONGEST_WAIT_IN_MEMORY_MS) return undefined
    // A body that has called nothing when it was moved may be at a short await that is not durable.
    if (this.#positions.count === this.#callsBefore && this.#waited === 0) return this.#untilCalled()
    return { type: 'suspended', wakeAt, entries: this.#journal.unconfirmed() }
  }

  #untilPoked(): undefined | Promise<undefined> {
    if (this.#poked) return undefined
    return new Promise((resolve) => {
      this.#wake = () => resolve(undefined)
    })
  }

  /** Waits for calls, those that the history has or any; a replay has diverged when none come. */
  async #untilCalled(): Promise<undefined> {
    const bound = this.scheduler.after(SPAN_MS, () => {
      this.#waited += 1
      if (this.#waited >= PATIENCE_SPANS) this.#end ??= this.#diverged()
      this.poke()
    })
    await this.#untilPoked()
    bound.cancel()
  }

  // ── Endings ──────────────────────────────────────────────────────────────────────────────────────────────────

  #bodyEnded(end: PassEnd): void {
    this.#bodyEnd = end
    this.poke()
  }

  #diverged(): PassEnd {
    return { type: 'diverged', error: this.#positions.divergence() }
  }

  #close(end: PassEnd): void {
    this.#over = true
    for (const { timer } of this.#timers.values()) timer.cancel()
    if (this.#running.size === 0) return
    const reason = end.type === 'aborted' ? end.reason : new DOMException('The run is over.', 'AbortError')
    for (const running of this.#running) running.abort(reason)
  }

  /** A record that could not be made under the claim ends the pass: nothing after it may look as if it had been. */
  #keepingClaim(stored: Promise<boolean>): Promise<void> {
    const kept = (claimed: boolean): void => {
      if (claimed) this.poke()
      else this.abort(new ClaimLostError({ runId: this.runId }), { patient: false })
    }
    const refused = (error: unknown): void => {
      this.#end ??= { type: 'failed', error }
      this.poke()
    }
    return stored.then(kept, refused)
  }
}
