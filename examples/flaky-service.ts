/**
 * Retries against a service that fails in the worst way: it does what it was asked, and then the answer gets lost. As
 * every attempt brings the same idempotency key, the money is moved once.
 */
import { Engine, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

/** A payment service that honours keys, behind a bad line. */
class FlakyPayments {
  calls = 0
  readonly #done = new Map<string, string>()

  get transfers(): number {
    return this.#done.size
  }

  async transfer(amount: number, key: string): Promise<string> {
    this.calls += 1
    const receipt = this.#done.get(key) ?? `receipt ${this.#done.size + 1} over ${amount}`
    this.#done.set(key, receipt)
    if (this.calls < 4) throw new Error('connection reset')
    return receipt
  }
}

const payments = new FlakyPayments()

const payOut = workflow('pay out', async (ctx, amount: number) =>
  ctx.step('transfer', { maxAttempts: 5, backoff: { base: '20ms', jitter: 0.5 }, timeout: '2s' }, (step) => {
    console.log(`attempt ${step.attempt} under the key ${step.idempotencyKey}`)
    return payments.transfer(amount, step.idempotencyKey)
  }),
)

const engine = new Engine({ store: sqlite('payments.db'), definitions: [payOut] })
await engine.launch()
const run = await engine.start(payOut, 250, { id: 'payout-7' })
console.log(`${await run.result()}: ${payments.calls} calls, ${payments.transfers} transfer`)
await engine.shutdown()
