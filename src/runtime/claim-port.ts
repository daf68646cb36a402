/**
 * The port of a pass: every write goes out under the claim of its delivery, and what a write finds (a lost claim, a
 * request to cancel, refused follow-ups) is told to the delivery, whatever the pass makes of it.
 */
import type { Action, AppliedOutcome, NewCheckpoint, PerformOutcome, WaitOutcome } from '../store/commands.ts'
import type { TransactOutcome } from '../store/contract.ts'
import type { EncodedValue, Ending } from '../store/records.ts'
import type { Hub } from './hub.ts'
import type { Port, Transaction, Transactions } from './replay/port.ts'

export interface ClaimPortOptions {
  readonly hub: Hub
  readonly runId: string
  readonly token: string
  readonly onClaimLost: () => void
  readonly onCancelRequested: () => void
  /** Told of every outcome of entries, which may have refused some of their effects. */
  readonly onApplied: (outcome: AppliedOutcome) => void
}

export class ClaimPort implements Port {
  readonly #options: ClaimPortOptions

  constructor(options: ClaimPortOptions) {
    this.#options = options
  }

  store(entries: readonly NewCheckpoint[]): Promise<boolean> {
    const { hub, runId, token, onApplied, onClaimLost, onCancelRequested } = this.#options
    return hub.submit({ type: 'checkpoint', runId, token, entries }).then((outcome) => {
      if (outcome.type === 'claimLost') {
        onClaimLost()
        return false
      }
      onApplied(outcome)
      if (outcome.cancelRequested) onCancelRequested()
      return true
    })
  }

  async perform(entry: NewCheckpoint, action: Action): Promise<PerformOutcome> {
    const { hub, runId, token, onClaimLost, onCancelRequested } = this.#options
    const outcome = await hub.submit({ type: 'perform', runId, token, entry, action })
    if (outcome.type === 'claimLost') onClaimLost()
    if (outcome.type === 'performed' && outcome.cancelRequested) onCancelRequested()
    return outcome
  }

  get transactions(): Transactions | undefined {
    const { transactions } = this.#options.hub.store
    if (transactions === undefined) return undefined
    const { isolationLevels } = transactions
    return { isolationLevels, transact: (transaction) => this.#transact(transaction) }
  }

  async wait(position: number, key: string, entries: readonly NewCheckpoint[]): Promise<WaitOutcome> {
    const { hub, runId, token } = this.#options
    return this.#lookAt(await hub.submit({ type: 'wait', runId, token, position, key, entries }))
  }

  async expire(position: number): Promise<WaitOutcome> {
    const { hub, runId, token } = this.#options
    return this.#lookAt(await hub.submit({ type: 'expire', runId, token, position }))
  }

  async ending(runId: string): Promise<Ending | 'missing' | undefined> {
    return (await this.#options.hub.store.endings([runId])).get(runId)
  }

  async attempts(runId: string): Promise<number> {
    const [run] = await this.#options.hub.store.runs([runId])
    return run?.attempt ?? 0
  }

  /** A hub that is closed answers nobody: the delivery is over by then. */
  onEnded(runId: string, listener: (ended: Ending | 'missing') => void): () => void {
    return this.#options.hub.waiter.listen(runId, (ended) => {
      if (ended !== 'closed') listener(ended)
    })
  }

  onSignal(position: number, listener: (payload: EncodedValue) => void): () => void {
    return this.#options.hub.signals.listen({ runId: this.#options.runId, position }, (payload) => {
      if (payload !== null) listener(payload)
    })
  }

  async #transact({ body, ...transaction }: Transaction): Promise<TransactOutcome> {
    const { hub, runId, token, onClaimLost, onCancelRequested } = this.#options
    const outcome = await hub.transact({ runId, token, ...transaction }, body)
    // One that was told to end finds its claim gone if the settlement of its run was faster.
    if (outcome.type === 'claimLost' && !transaction.signal.aborted) onClaimLost()
    if (outcome.type === 'performed' && outcome.cancelRequested) onCancelRequested()
    return outcome
  }

  #lookAt(outcome: WaitOutcome): WaitOutcome {
    if (outcome.type === 'claimLost') this.#options.onClaimLost()
    return outcome
  }
}
