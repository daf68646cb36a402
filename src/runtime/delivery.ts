/**
 * One delivery of a claimed run: from its claim to its settlement.
 *
 * The claim's token goes with every write. A delivery that ends without a settlement (a lost claim, a store that
 * refuses a record) has written nothing that another delivery would not write again: the run is taken over when its
 * lease ends.
 */
import type { EpochMs, Timer } from '../core/clock.ts'
import type { Codec } from '../core/codec.ts'
import type { EngineEvent } from '../core/engine-events.ts'
import { ClaimLostError, EngineShutdownError, PerdureError } from '../core/errors.ts'
import type { Random } from '../core/random.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { AppliedOutcome, NewCheckpoint, Settlement } from '../store/contract.ts'
import type { EncodedValue, RunStatus } from '../store/records.ts'
import { ClaimPort } from './claim-port.ts'
import type { Handler } from './handler.ts'
import type { Hub } from './hub.ts'
import type { History } from './replay/history.ts'
import { Pass } from './replay/pass.ts'
import { type AbortReason, abortError, type DeliveryEnd, failureOf, settlementOf } from './settlement.ts'

/** A run as its claim gave it. */
export interface Claim {
  readonly runId: string
  readonly definition: string
  /** null: the internal queue. */
  readonly queue: string | null
  readonly lane: string
  readonly token: string
  readonly leaseMs: number
  readonly epoch: number
  readonly attempt: number
  readonly input: EncodedValue
  readonly history: History
  readonly deadlineAt: EpochMs | null
  readonly cancelRequested: boolean
}

export interface DeliveryOptions {
  readonly hub: Hub
  readonly scheduler: Scheduler
  readonly random: Random
  readonly codec: Codec
  readonly onEvent: (event: EngineEvent) => void
}

type Input = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown }

/** After the deadline of its run, a step that doesn't heed its signal is waited for no longer than this. */
const GRACE_AFTER_DEADLINE_MS = 5_000

export class Delivery {
  readonly claim: Claim
  readonly #handler: Handler
  readonly #options: DeliveryOptions
  #pass: Pass | undefined
  #abort: AbortReason['type'] | undefined
  #deadline: Timer | undefined

  constructor(claim: Claim, handler: Handler, options: DeliveryOptions) {
    this.claim = claim
    this.#handler = handler
    this.#options = options
    if (claim.cancelRequested) this.#abort = 'cancelled'
  }

  get standing(): 'moving' | 'userCode' | 'waiting' {
    return this.#pass?.standing ?? 'moving'
  }

  /** Delivers and settles. Never rejects. */
  async run(): Promise<void> {
    try {
      const end = await this.#walk()
      const settlement = settlementOf(end, this.#abort, this.#options.codec)
      if (settlement === undefined) this.#leave(end)
      else await this.#settle(settlement, end.type === 'suspended' ? end.entries : [])
    } catch (error) {
      this.#event({ type: 'delivery.abandoned', ...this.#names(), error })
    } finally {
      this.#deadline?.cancel()
    }
  }

  /**
   * Stops the delivery. On cancellation, running steps are waited for: the claim is held until they have ended. A
   * deadline waits for them a little; a shutdown or a lost claim doesn't.
   */
  abort(reason: AbortReason['type']): void {
    if (this.#abort === undefined || reason === 'claimLost' || reason === 'shutdown') this.#abort = reason
    this.#abortPass(reason)
  }

  #abortPass(reason: AbortReason['type']): void {
    const { runId } = this.claim
    const lost = reason === 'shutdown' ? new EngineShutdownError({}) : new ClaimLostError({ runId })
    const patient = reason === 'cancelled' || reason === 'timeout'
    this.#pass?.abort(abortError(runId, reason, lost), { patient })
  }

  async #walk(): Promise<DeliveryEnd> {
    const { claim } = this
    const { hub, scheduler, random, codec, onEvent } = this.#options
    const input = this.#handler.parseInput === undefined ? this.#decodeInput() : await this.#parseInput()
    if (!input.ok) return { type: 'refused', error: input.error }
    const { runId, epoch, history } = claim
    const { clock } = hub.store
    const pass = new Pass({ runId, epoch, history, clock, scheduler, random, codec, port: this.#port(), onEvent })
    this.#pass = pass
    this.#armDeadline(pass)
    if (this.#abort !== undefined) return { type: 'aborted', reason: this.#abort }
    onEvent({ type: 'run.started', runId, definition: claim.definition, attempt: claim.attempt })
    return pass.walk(() => this.#handler.body(pass, input.value))
  }

  #decodeInput(): Input {
    try {
      return { ok: true, value: this.#options.codec.decode(this.claim.input) }
    } catch (error) {
      return { ok: false, error }
    }
  }

  async #parseInput(): Promise<Input> {
    const decoded = this.#decodeInput()
    if (!decoded.ok) return decoded
    try {
      return { ok: true, value: await this.#handler.parseInput?.(decoded.value) }
    } catch (error) {
      return { ok: false, error }
    }
  }

  #armDeadline(pass: Pass): void {
    const { deadlineAt } = this.claim
    if (deadlineAt === null) return
    const { clock, scheduler } = pass
    if (deadlineAt <= clock.now()) {
      this.#abort ??= 'timeout'
      return
    }
    this.#deadline = clock.at(deadlineAt, () => {
      this.abort('timeout')
      this.#deadline = scheduler.after(GRACE_AFTER_DEADLINE_MS, () => pass.abort(undefined, { patient: false }))
    })
  }

  #port(): ClaimPort {
    const { runId, token } = this.claim
    return new ClaimPort({
      hub: this.#options.hub,
      runId,
      token,
      onClaimLost: () => this.abort('claimLost'),
      onCancelRequested: () => this.abort('cancelled'),
      onApplied: (outcome) => this.#tellRefusals(outcome),
    })
  }

  async #settle(settlement: Settlement, entries: readonly NewCheckpoint[]): Promise<void> {
    const { runId, token } = this.claim
    const { hub, codec } = this.#options
    try {
      const outcome = await hub.submit({ type: 'settle', runId, token, entries, settlement })
      if (outcome.type === 'claimLost') this.#event({ type: 'claim.lost', ...this.#names() })
      else {
        this.#tellRefusals(outcome)
        this.#tellSettled(settlement, outcome.status)
      }
    } catch (error) {
      // Trouble with the store is no outcome. Else the database refuses this very output or error.
      if (PerdureError.is(error) || (settlement.type !== 'succeed' && settlement.type !== 'fail')) throw error
      const failure = failureOf('serialization', error, codec)
      await hub.submit({ type: 'settle', runId, token, entries, settlement: { type: 'fail', failure } })
      this.#tellSettled(settlement, 'ERROR')
    }
  }

  #tellSettled(settlement: Settlement, status: RunStatus): void {
    const { runId, definition } = this.claim
    if (status === 'WAITING' && settlement.type === 'suspend') {
      this.#event({ type: 'run.suspended', runId, definition, wakeAt: settlement.wakeAt })
    } else if (status === 'ENQUEUED') this.#event({ type: 'run.released', runId, definition })
    else this.#event({ type: 'run.ended', runId, definition, status })
  }

  #tellRefusals({ refusals }: AppliedOutcome): void {
    for (const refusal of refusals) this.#event({ type: 'effect.refused', runId: this.claim.runId, refusal })
  }

  #leave(end: DeliveryEnd): void {
    if (end.type === 'failed') this.#event({ type: 'delivery.abandoned', ...this.#names(), error: end.error })
    else this.#event({ type: 'claim.lost', ...this.#names() })
  }

  #event(event: EngineEvent): void {
    this.#options.onEvent(event)
  }

  #names(): { readonly runId: string; readonly definition: string } {
    return { runId: this.claim.runId, definition: this.claim.definition }
  }
}
