import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newRun } from '../../src/store/conformance/makers.ts'
import { ManualClock } from '../../src/store/conformance/manual-clock.ts'
import { claimRequest, from, lanes, newQueue } from '../../src/store/conformance/sources.ts'
import type { ClaimSource, Command, QueueChange, Settlement, Store } from '../../src/store/contract.ts'
import { memory } from '../../src/store/memory/index.ts'
import type { RunRecord } from '../../src/store/records.ts'
import type { Memory } from './memory-claim-spec.ts'
import { expectedClaim, getInLine } from './memory-claim-spec.ts'

const QUEUES = ['q', 'p'] as const
const queueName = fc.constantFrom(null, ...QUEUES)
const definition = fc.constantFrom('x', 'y')
const key = fc.constantFrom('eu', 'us', 'jp', null)

const enqueue = fc.record({
  op: fc.constant('enqueue' as const),
  queue: queueName,
  definition,
  partitionKey: key,
  priority: fc.integer({ min: -1, max: 1 }),
  delay: fc.option(fc.integer({ min: 0, max: 3 })),
})
const claim = fc.record({
  op: fc.constant('claim' as const),
  tokens: fc.nat(4),
  again: fc.nat(3),
  version: fc.constantFrom(null, null, 'v1', 'v2'),
  definitions: fc.constantFrom(['x'], ['x', 'y'], ['y', 'z', 'x']),
  sources: fc.uniqueArray(
    fc.record({ queue: queueName, room: fc.nat(4), limit: fc.option(fc.integer({ min: 1, max: 2 })), running: key }),
    { selector: ({ queue }) => queue, maxLength: 3 },
  ),
})
const settle = fc.record({
  op: fc.constant('settle' as const),
  pick: fc.nat(20),
  how: fc.constantFrom('succeed' as const, 'release' as const, 'suspend' as const, 'fail' as const),
  wake: fc.option(fc.integer({ min: -1, max: 3 })),
})
const touch = fc.record({ op: fc.constantFrom('cancel' as const, 'requeue' as const), pick: fc.nat(20) })
const pass = fc.record({ op: fc.constant('pass' as const), by: fc.integer({ min: -2, max: 6 }) })
const change = fc.record({
  op: fc.constant('change' as const),
  queue: fc.constantFrom(...QUEUES),
  change: fc.record(
    {
      globalConcurrency: fc.option(fc.integer({ min: 1, max: 3 })),
      releaseWhileWaiting: fc.boolean(),
      rateLimit: fc.option(fc.record({ limit: fc.integer({ min: 1, max: 3 }), periodMs: fc.constant(4) })),
      priorityEnabled: fc.boolean(),
      partitioned: fc.boolean(),
      paused: fc.boolean(),
    },
    { requiredKeys: [] },
  ),
})
const operation = fc.oneof(
  { weight: 6, arbitrary: enqueue },
  { weight: 6, arbitrary: claim },
  { weight: 4, arbitrary: settle },
  { weight: 1, arbitrary: touch },
  { weight: 3, arbitrary: pass },
  { weight: 2, arbitrary: change },
)
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never
type Claim = Extract<Operation, { readonly op: 'claim' }>

/** A store whose every claim is compared with what the contract says of it. */
class Bench {
  readonly #clock = new ManualClock()
  readonly #store: Store = memory({ clock: this.#clock })
  readonly #memory: Memory = { starts: new Map(), turns: new Map() }
  readonly #tokens: string[] = []
  #count = 0

  async open(): Promise<void> {
    await this.#store.open()
    await this.#store.registerQueues([newQueue('q'), newQueue('p', { partitioned: true, globalConcurrency: 2 })])
  }

  async run(operation: Operation): Promise<void> {
    if (operation.op === 'claim') return this.#claim(operation)
    const before = await this.#rows()
    await this.#apply(operation)
    getInLine(this.#memory, before, await this.#rows())
  }

  async #apply(operation: Exclude<Operation, Claim>): Promise<void> {
    switch (operation.op) {
      case 'pass':
        return this.#clock.pass(operation.by)
      case 'change':
        await this.#store.changeQueue(operation.queue, operation.change as QueueChange)
        return
      case 'enqueue': {
        const { queue, partitionKey, priority, delay } = operation
        const due = delay === null ? null : ({ type: 'after', ms: delay } as const)
        const run = { queue, partitionKey, priority, due, definition: operation.definition }
        return this.#commit({ type: 'enqueue', commandId: this.#next(), runs: [newRun(this.#next(), run)] })
      }
      case 'settle':
        return this.#settle(operation)
      default: {
        const rows = await this.#rows()
        const run = rows[operation.pick % Math.max(1, rows.length)]
        if (run !== undefined) await this.#commit({ type: operation.op, commandId: this.#next(), runId: run.id })
      }
    }
  }

  async #settle({ pick, how, wake }: Extract<Operation, { readonly op: 'settle' }>): Promise<void> {
    const pending = (await this.#rows()).filter(({ status }) => status === 'PENDING')
    const run = pending[pick % Math.max(1, pending.length)]
    if (run === undefined || run.token === null) return
    const settlements = {
      succeed: { type: 'succeed', output: '1' },
      release: { type: 'release' },
      fail: { type: 'fail', failure: { kind: 'error', error: null } },
      suspend: { type: 'suspend', wakeAt: wake === null ? null : this.#clock.now() + wake, children: [] },
    } satisfies Record<string, Settlement>
    await this.#commit({ type: 'settle', runId: run.id, token: run.token, entries: [], settlement: settlements[how] })
  }

  async #claim({ tokens, again, version, definitions, sources }: Claim): Promise<void> {
    const fresh = Array.from({ length: tokens }, () => this.#next())
    const request = claimRequest([...this.#tokens.slice(-again || this.#tokens.length), ...fresh], {
      version,
      definitions,
      sources: sources.map(({ queue, room, limit, running }): ClaimSource => {
        const local = limit === null ? null : lanes(limit, running === null ? {} : { [running]: 1 })
        return { ...from(queue ?? '', { room, lanes: local }), queue }
      }),
    })
    this.#tokens.push(...fresh)
    const rows = await this.#rows()
    const expected = expectedClaim({
      rows,
      queues: await this.#store.queues(),
      request,
      now: this.#clock.now(),
      memory: this.#memory,
    })
    const { runs, nextAt } = await this.#store.claim(request)
    expect(runs.map(({ run }) => run.id)).toEqual(expected.ids)
    const known = expected.nextAt ?? Infinity
    if (expected.moreToStart) expect(nextAt ?? Infinity).toBeGreaterThanOrEqual(known)
    else expect(nextAt).toBe(expected.nextAt)
    expect(nextAt ?? Infinity).toBeGreaterThan(this.#clock.now())
  }

  async #rows(): Promise<readonly RunRecord[]> {
    return (await this.#store.list({ limit: 1_000 })).toReversed()
  }

  async #commit(command: Command): Promise<void> {
    await this.#store.commit([command])
  }

  #next(): string {
    this.#count += 1
    return `${this.#count}`
  }
}

describe('a claim of the memory store', () => {
  it('gives what one that looks at every run would give, whatever happened before', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 80, size: 'max' }), async (operations) => {
        const bench = new Bench()
        await bench.open()
        for (const one of operations) await bench.run(one)
      }),
      { numRuns: 1_500 },
    )
  })
})
