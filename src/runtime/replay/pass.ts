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
import type { Clock, EpochMs } from '../../core/clock.ts'
import type { Codec } from '../../core/codec.ts'
import type { EngineEvent } from '../../core/engine-events.ts'
import { ClaimLostError, NestedDurableCallError, type NonDeterminismError } from '../../core/errors.ts'
import type { Random } from '../../core/random.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import type { AwaitedRun, NewCheckpoint } from '../../store/commands.ts'
import { encodeError } from '../thrown.ts'
import { Call, type CallRequest, callSite, describeCall } from './call.ts'
import type { History } from './history.ts'
import { Journal, type LiveEvent, type Outcome } from './journal.ts'
import { Patience } from './patience.ts'
import type { Port } from './port.ts'
import { Positions } from './positions.ts'
import { Recording } from './recording.ts'
import { Replaying } from './replaying.ts'
import { type Running, Work } from './running.ts'
import { enclosingStep, inBodyContext, lineageHere, nextLineage } from './scope.ts'
import { type Parked, Suspension } from './suspension.ts'
import { Turns } from './turns.ts'

export interface PassOptions {
  readonly runId: string
  /** How often the run was requeued. */
  readonly epoch: number
  readonly history: History
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly random: Random
  readonly codec: Codec
  readonly port: Port
  readonly onEvent: (event: EngineEvent) => void
}

export type PassEnd =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'threw'; readonly error: unknown }
  /** Until an instant, if there is one, a signal for one of its open waits, or the end of one of `children`. */
  | {
      readonly type: 'suspended'
      readonly wakeAt: EpochMs | null
      readonly children: readonly AwaitedRun[]
      readonly entries: readonly NewCheckpoint[]
    }
  | { readonly type: 'diverged'; readonly error: NonDeterminismError }
  | { readonly type: 'aborted'; readonly reason: unknown }
  /** The store refused a record, or was closed. */
  | { readonly type: 'failed'; readonly error: unknown }

export class Pass {
  readonly runId: string
  readonly epoch: number
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly random: Random
  readonly codec: Codec
  readonly history: History
  readonly port: Port
  /** How calls get their outcomes recorded. */
  readonly recording: Recording
  readonly #onEvent: (event: EngineEvent) => void
  readonly #positions: Positions
  readonly #journal: Journal
  readonly #turns: Turns
  readonly #patience: Patience
  readonly #replaying: Replaying
  readonly #suspension: Suspension
  readonly #work: Work
  /** Tells this pass from others in the context of asynchronous code. */
  readonly #identity = Symbol('pass')
  /** Calls with a position that may have to be begun, in order of position. */
  #unbegun: Call[] = []
  /** Calls with a position when the body was moved last. */
  #callsBefore = 0
  #poked = false
  #wake: (() => void) | undefined
  #end: PassEnd | undefined
  /** How the body ended. */
  #bodyEnd: PassEnd | undefined
  #aborted: { readonly reason: unknown; patient: boolean } | undefined
  #over = false

  constructor(options: PassOptions) {
    this.runId = options.runId
    this.epoch = options.epoch
    this.clock = options.clock
    this.scheduler = options.scheduler
    this.random = options.random
    this.codec = options.codec
    this.history = options.history
    this.port = options.port
    this.#onEvent = options.onEvent
    const positions = new Positions(options.runId, options.history)
    const journal = new Journal(options.history, positions.lineages, options.port)
    const patience = new Patience(options.scheduler)
    this.#positions = positions
    this.#journal = journal
    this.#patience = patience
    this.#replaying = new Replaying({ positions, journal, patience })
    this.#turns = new Turns(options.scheduler)
    this.#suspension = new Suspension(options, () => this.poke())
    this.#work = new Work(() => this.#workEnded())
    this.recording = new Recording({ journal, turns: this.#turns, port: options.port, host: this })
  }

  /** Runs the body until it ends, is suspended, diverges, or the pass is aborted. Never rejects. */
  async walk(body: () => Promise<unknown>): Promise<PassEnd> {
    await this.#move(() => {
      inBodyContext(body).then(
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
    if (this.#positions.add(call, this.#turns.moving)) this.#unbegun.push(call)
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
    return this.#over || this.#aborted !== undefined || this.#end !== undefined
  }

  /** What moves a pass that stands still: its own loop and the store, a user's function, or something it waits for. */
  get standing(): 'moving' | 'userCode' | 'waiting' {
    if ((this.#wake === undefined || this.recording.asking) && !this.#over) return 'moving'
    const bodyAwaitsAnythingElse = this.#positions.open.size === 0 || this.replaying
    return this.#work.runsUserCode || bodyAwaitsAnythingElse ? 'userCode' : 'waiting'
  }

  /**
   * Ends the pass: no further delivery, running steps are aborted. With `patient`, the pass is over only when they
   * have ended; otherwise at once. Aborting again without patience cuts the waiting short.
   */
  abort(reason: unknown, options: { readonly patient: boolean }): void {
    if (this.#over) return
    if (this.#aborted === undefined) {
      this.#aborted = { reason, patient: options.patient }
      this.#work.abort(reason)
    } else if (!options.patient) {
      this.#aborted.patient = false
    }
    this.poke()
  }

  // ── For the verbs (step.ts, sleep.ts, signal.ts, ...) ────────────────────────────────────────────────────────

  /** Enters work that `abort` must be able to stop; returns the way out. */
  enter(running: Running): () => void {
    return this.#work.enter(running)
  }

  /** Records a call's outcome; it is delivered when its turn comes. Never rejects. */
  record(call: Call, outcome: Outcome): void {
    this.unpark(call)
    this.recording.outcome(call, outcome)
  }

  recordError(call: Call, error: unknown, attempts = 1): void {
    this.record(call, { failed: true, value: encodeError(this.codec, error), attempts })
  }

  /** Tells that a call does nothing but wait, until its outcome is recorded or it is unparked. */
  park(call: Call, parked: Parked): void {
    if (this.#over) parked.release()
    else this.#suspension.park(call.position, parked)
    this.poke()
  }

  /** What the call waited for is there, if it was parked: its outcome will be recorded. */
  unpark(call: Call): void {
    this.#suspension.leave(call.position)
  }

  /** Tells of an outcome that comes too late to be recorded. */
  discard(call: Call): void {
    this.#onEvent({ type: 'outcome.discarded', runId: this.runId, step: call.name })
  }

  claimLost(): void {
    this.abort(new ClaimLostError({ runId: this.runId }), { patient: false })
  }

  /** Ends the pass without an outcome of its run. */
  fail(error: unknown): void {
    this.#end ??= { type: 'failed', error }
    this.poke()
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
      const next = this.#ended() ?? this.#step()
      // Most moves of a pass that has calls to begin are over at once: only what takes time is awaited.
      const end = next instanceof Promise ? await next : next
      if (end !== undefined) return end
    }
  }

  #ended(): PassEnd | undefined {
    if (this.#end !== undefined) return this.#end
    if (this.#aborted !== undefined) {
      const { patient, reason } = this.#aborted
      return patient && this.#work.goesOn ? undefined : { type: 'aborted', reason }
    }
    return this.replaying ? undefined : this.#bodyEnd
  }

  /** One move of the pass, or a wait for what could move it. */
  #step(): PassEnd | undefined | Promise<PassEnd | undefined> {
    if (this.#aborted !== undefined) return this.#untilPoked()
    return this.replaying ? this.#replay() : this.#live()
  }

  #replay(): PassEnd | undefined | Promise<PassEnd | undefined> {
    this.#unbegun.push(...this.#positions.admit(this.#patience.lenient))
    if (!this.replaying) return undefined
    const step = this.#replaying.step({ bodyEnded: this.#bodyEnd !== undefined })
    switch (step.type) {
      case 'happens':
        return this.#happen(step.event, step.tell)
      case 'ended':
        return this.#bodyEnd
      case 'diverged':
        return { type: 'diverged', error: this.#positions.divergence() }
      case 'waits':
        return this.#untilCalled()
    }
  }

  /** Lets the next stored event happen, or begins what is new; resolves to the end of a pass that is suspended. */
  #live(): PassEnd | undefined | Promise<PassEnd | undefined> {
    const journal = this.#journal
    if (!journal.held) {
      for (const call of this.#positions.release()) void this.recording.keepingClaim(journal.arrival(call))
    }
    if (journal.head !== undefined) return this.#happen(journal.head, () => journal.happens())
    if (this.#unbegun.length > 0 && (journal.confirmed || !journal.held)) return this.#beginCalls()
    return this.#suspended() ?? this.#untilPoked()
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
    return this.recording.keepingClaim(this.#journal.confirm()).then(() => this.#begin(calls))
  }

  #begin(calls: readonly Call[]): undefined {
    if (this.over || this.#ended() !== undefined) return
    // Sleeps that ended while nobody had the run end in the order of their instants, not of their positions.
    const wakeAt = ({ position }: Call): EpochMs => this.history.timers.get(position) ?? Number.MAX_SAFE_INTEGER
    for (const call of calls.toSorted((a, b) => wakeAt(a) - wakeAt(b))) call.begin(call)
  }

  #move(cause: () => void): Promise<undefined> {
    return this.#turns.move(() => {
      this.#patience.renew()
      this.#callsBefore = this.#positions.count
      this.#suspension.moved()
      cause()
    })
  }

  #suspended(): PassEnd | undefined {
    const { size } = this.#suspension
    // A step's body that ignored its timeout may still run; its outcome is recorded, and nothing waits for it.
    if (size === 0 || size !== this.#positions.open.size || !this.#journal.idle) return undefined
    const wakers = this.#suspension.due({ called: this.#positions.count > this.#callsBefore })
    return wakers && { type: 'suspended', ...wakers, entries: this.#journal.unconfirmed() }
  }

  #untilPoked(): undefined | Promise<undefined> {
    if (this.#poked) return undefined
    return new Promise((resolve) => {
      this.#wake = () => resolve(undefined)
    })
  }

  /** Waits for calls that the history has. */
  async #untilCalled(): Promise<undefined> {
    const leaveOut = this.#patience.span(() => this.poke())
    await this.#untilPoked()
    leaveOut()
  }

  // ── Endings ──────────────────────────────────────────────────────────────────────────────────────────────────

  #bodyEnded(end: PassEnd): void {
    this.#bodyEnd = end
    this.poke()
  }

  #close(end: PassEnd): void {
    this.#over = true
    if (end.type === 'returned' || end.type === 'threw') this.#tellNotMade()
    this.#suspension.close()
    if (!this.#work.goesOn) return
    this.#work.abort(end.type === 'aborted' ? end.reason : new DOMException('The run is over.', 'AbortError'))
  }

  /** A body that ends in the turn of its last calls has not awaited them, and they never begin. */
  #tellNotMade(): void {
    // Those that only a replay has served were never begun either.
    const unbegun = this.#unbegun.filter((call) => this.#positions.open.get(call.position) === call)
    const calls = [...unbegun, ...this.#positions.release()].map(describeCall)
    if (calls.length > 0) this.#onEvent({ type: 'calls.notMade', runId: this.runId, calls })
  }

  /** Only who waits for all work to end has anything to do when some has. */
  #workEnded(): void {
    if (this.#aborted !== undefined) this.poke()
  }
}
