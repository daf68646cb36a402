/**
 * `ctx.transaction`: runs a function with SQL in the store's own database; what it writes and the record of it are one
 * commit. The record is tentative until then: the journal is held meanwhile, and what else ends is recorded after it.
 *
 * A function that throws has written nothing: its error is recorded apart, like a step's. What others' transactions, or
 * trouble of the database, make fail is tried again in a fresh transaction and counts as no attempt.
 */
import { AsyncResource } from 'node:async_hooks'
import { NestedDurableCallError } from '../../core/errors.ts'
import type { IsolationLevel, SqlAccess } from '../../store/contract.ts'
import type { EncodedValue } from '../../store/records.ts'
import { type Attempt, type AttemptPolicy, type FailedAttempt, RunningAttempt, runAttempts } from './attempts.ts'
import { type Call, describeCall } from './call.ts'
import type { Pass } from './pass.ts'
import { insideStep } from './scope.ts'

export interface TransactionWork {
  readonly policy: AttemptPolicy
  readonly isolationLevel: IsolationLevel | null
  readonly body: (transaction: OpenTransaction) => unknown
}

interface Committed {
  readonly type: 'returned'
}

const COMMITTED: Committed = { type: 'returned' }

/** Before a fresh transaction, of real time: rivals that wait for as long would only meet again. */
const FIRST_PAUSE_MS = 5
const LONGEST_PAUSE_MS = 500

/** The transactions of a pass: one at a time. */
export class TransactionTurn {
  readonly #pass: Pass
  #open: Call | undefined

  constructor(pass: Pass) {
    this.#pass = pass
  }

  /** Runs the transaction's attempts; what comes of them is recorded. Never rejects. */
  async begin(call: Call, work: TransactionWork): Promise<void> {
    const pass = this.#pass
    if (this.#open !== undefined) {
      const details = { runId: pass.runId, call: describeCall(call), step: this.#open.name, overlapping: true }
      return pass.recordError(call, new NestedDurableCallError(details))
    }
    this.#open = call
    // The body runs in the context of its caller, whoever lets the journal go on, but for the scope that it is in.
    const caller = new AsyncResource('perdure', { requireManualDestroy: true })
    const inside = { runId: pass.runId, step: call.name }
    const body = (transaction: OpenTransaction): Promise<unknown> =>
      caller.runInAsyncScope(() => insideStep(inside, async () => work.body(transaction)))
    await runAttempts(pass, call, work.policy, {
      run: (attempt) => runAttempt(pass, call, { ...work, body }, attempt),
      succeeded: () => {},
    })
    this.#open = undefined
  }
}

async function runAttempt(
  pass: Pass,
  call: Call,
  work: TransactionWork,
  attempt: number,
): Promise<Committed | FailedAttempt> {
  const running = new RunningAttempt(pass, call, attempt)
  const leave = pass.enter(running)
  const { timeoutMs } = work.policy
  if (timeoutMs !== undefined) running.setTimeout(pass, call, timeoutMs, () => {})
  const end = await commit(pass, call, work, running)
  running.clearTimeout()
  if (end.type === 'returned') leave()
  else void end.settled.then(leave, leave)
  return end
}

/** Until one transaction of the attempt has committed or failed by itself, or the attempt is aborted. */
async function commit(
  pass: Pass,
  call: Call,
  work: TransactionWork,
  running: RunningAttempt,
): Promise<Committed | FailedAttempt> {
  const { signal } = running
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    const body = new Body(pass, work, running)
    const outcome = await pass.recording.transact(call, running.attempt, {
      ...{ name: call.name, isolationLevel: work.isolationLevel, signal },
      body: (sql) => body.run(sql),
    })
    if (outcome?.type === 'performed') return COMMITTED
    // The pass is over.
    if (outcome?.type !== 'rolledBack') return { type: 'failed', error: undefined, retryable: false, settled: ENDED }
    const { error, interfered, settled } = outcome
    if (!interfered) return { type: 'failed', error, retryable: body.storable, settled }
    await pause(pass, pauseMs * (0.5 + pass.random.next()))
    if (signal.aborted) return { type: 'failed', error: signal.reason, retryable: true, settled }
  }
}

const ENDED = Promise.resolve()

/** One call of the function. */
class Body {
  /** False: what it returned can't be stored, and would not be the next time. */
  storable = true
  readonly #pass: Pass
  readonly #work: TransactionWork
  readonly #running: RunningAttempt

  constructor(pass: Pass, work: TransactionWork, running: RunningAttempt) {
    this.#pass = pass
    this.#work = work
    this.#running = running
  }

  async run(sql: SqlAccess): Promise<EncodedValue> {
    const value = await this.#work.body(new OpenTransaction(this.#running, sql))
    try {
      return this.#pass.codec.encode(value)
    } catch (error) {
      this.storable = false
      throw error
    }
  }
}

/** What the function of a transaction is given. */
export class OpenTransaction implements Attempt {
  readonly idempotencyKey: string
  readonly attempt: number
  readonly #running: RunningAttempt
  readonly #sql: SqlAccess

  constructor(running: RunningAttempt, sql: SqlAccess) {
    this.idempotencyKey = running.idempotencyKey
    this.attempt = running.attempt
    this.#running = running
    this.#sql = sql
  }

  get signal(): AbortSignal {
    return this.#running.signal
  }

  get native(): unknown {
    return this.#sql.native
  }

  /** Of the type that the caller says its rows are. */
  async query<Row>(sql: string, params: readonly unknown[] = []): Promise<Row[]> {
    return (await this.#sql.query(sql, params)) as Row[]
  }

  run(sql: string, params: readonly unknown[] = []): Promise<{ readonly changes: number }> {
    return this.#sql.run(sql, params)
  }
}

/** Of real time; cut short when the pass is told to end. */
async function pause(pass: Pass, pauseMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = pass.scheduler.after(pauseMs, done)
    const leave = pass.enter({ isUserCode: false, abort: done })
    function done(): void {
      timer.cancel()
      leave()
      resolve()
    }
  })
}
