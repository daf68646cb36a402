/** What may be said of a queue, where it is made and where an engine is given it. */
import { describe, expect, it } from 'vitest'
import { queueConfig } from '../../../src/api/queue.ts'
import {
  ConfigurationError,
  DuplicateQueueError,
  Engine,
  InvalidDurationError,
  InvalidIdError,
  PerdureError,
  type QueueOptions,
  queue,
  UnknownQueueError,
  workflow,
} from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { memory } from '../../../src/store/memory/index.ts'

const logger = silent

/** A value as a caller without types may give it. */
const untyped = (value: unknown): never => value as never

const thrown = (make: () => unknown): PerdureError => {
  try {
    make()
  } catch (error) {
    if (error instanceof PerdureError) return error
    throw error
  }
  throw new Error('it was not refused')
}

const NO_COUNTS: readonly unknown[] = [0, -1, 1.5, Number.NaN, Infinity, '2', true, {}, 2 ** 53]
const NO_FLAGS: readonly unknown[] = [0, 1, 'true', null, {}]
const NO_DURATIONS: readonly unknown[] = ['soon', '', -1, Number.NaN, Infinity, {}, true]
const BAD: readonly (readonly [string, readonly unknown[], RegExp])[] = [
  ['workerConcurrency', [...NO_COUNTS, null], /a whole number of at least 1/],
  ['globalConcurrency', NO_COUNTS, /a whole number of at least 1/],
  ['maxTasksPerIteration', [...NO_COUNTS, null], /a whole number of at least 1/],
  ['maxAttempts', [...NO_COUNTS, null], /a whole number of at least 1/],
  ['configVersion', [-1, 1.5, Number.NaN, '2', null], /a whole number of at least 0/],
  ['releaseWhileWaiting', NO_FLAGS, /true or false/],
  ['priorityEnabled', NO_FLAGS, /true or false/],
  ['partitioned', NO_FLAGS, /true or false/],
  ['basePollingInterval', [...NO_DURATIONS, 0, '0s', 0.5], /'30s'|at least 1 ms/],
  ['maxPollingInterval', [...NO_DURATIONS, 0, '0s'], /'30s'|at least 1 ms/],
  ['lease', [...NO_DURATIONS, 0, null], /'30s'|at least 1 ms/],
  ['rateLimiter', [5, '5/s', [], true], /limit, period/],
  ['rateLimiter', [{ limit: 0, period: '1s' }, { period: '1s' }], /limit: .* a whole number of at least 1/],
  [
    'rateLimiter',
    [{ limit: 5 }, { limit: 5, period: 0 }, { limit: 5, period: '-1s' }],
    /period: .*('30s'|at least 1 ms)/,
  ],
  ['rateLimiter', [{ limit: 5, perido: '1s' }], /did you mean 'period'\?/],
  ['backoff', [5, null, [], { base: 'soon' }, { factor: 0.5 }, { jitter: 2 }, { bsae: 1 }], /backoff/],
  ['retention', [5, 'never', '7d', [], { succes: '1d' }], /success, error, dead, cancelled/],
  ['retention', [{ success: 0 }, { error: 0.5 }, { dead: '0ms' }, { cancelled: -1 }], /'30s'|at least 1 ms/],
  ['concurrency', [5], /there is no such option/],
  ['workerConcurency', [5], /did you mean 'workerConcurrency'\?/],
]

describe('queue', () => {
  it.each(BAD)('%s is not %j', (option, values, message) => {
    for (const value of values) {
      const error = thrown(() => queue('media', untyped({ [option]: value })))
      expect(['CONFIGURATION', 'INVALID_DURATION']).toContain(error.code)
      expect(error.message).toMatch(message)
      expect(error.message).toContain(`queue 'media'.${option}`)
    }
  })

  it('options that are none', () => {
    for (const options of [null, 5, 'fast', [], () => {}]) {
      expect(thrown(() => queue('media', untyped(options)))).toBeInstanceOf(ConfigurationError)
    }
  })

  it('names', () => {
    for (const name of ['', 'a\n', 'x'.repeat(256), '\ud800', 5, undefined, null, 'perdure:internal']) {
      expect(thrown(() => queue(untyped(name)))).toBeInstanceOf(InvalidIdError)
    }
  })

  it('options that contradict each other', () => {
    const released = thrown(() => queue('media', { releaseWhileWaiting: true }))
    expect(released.message).toMatch(/releaseWhileWaiting: .*globalConcurrency/)
    expect(thrown(() => queue('media', { releaseWhileWaiting: true, globalConcurrency: null }))).toEqual(released)
    const polling = thrown(() => queue('media', { basePollingInterval: '2s', maxPollingInterval: '1s' }))
    expect(polling.message).toMatch(/maxPollingInterval: 1000 ms is less than basePollingInterval, 2000 ms/)
  })

  it('shows its name and nothing else, and cannot be changed', () => {
    const media = queue('media', { workerConcurrency: 2 })
    expect(Object.entries(media)).toEqual([['name', 'media']])
    expect(Object.isFrozen(media)).toBe(true)
  })

  it('has the defaults that are promised', () => {
    expect(queueConfig(queue('media'))).toEqual({
      registration: {
        name: 'media',
        configVersion: 0,
        globalConcurrency: null,
        releaseWhileWaiting: false,
        rateLimit: null,
        priorityEnabled: false,
        partitioned: false,
        retention: null,
      },
      workerConcurrency: null,
      maxTasksPerIteration: 100,
      basePollingMs: 1_000,
      maxPollingMs: 120_000,
      leaseMs: null,
      maxAttempts: 3,
      backoff: { baseMs: 1_000, factor: 2, maxMs: 300_000, jitter: 0 },
    })
  })

  it('keeps what is given', () => {
    const options: QueueOptions = {
      workerConcurrency: 2,
      globalConcurrency: 5,
      releaseWhileWaiting: true,
      rateLimiter: { limit: 100, period: '1m' },
      priorityEnabled: true,
      partitioned: true,
      maxTasksPerIteration: 10,
      basePollingInterval: '5m',
      lease: '1m',
      maxAttempts: 7,
      backoff: { base: '2s', jitter: 0.5 },
      retention: { success: '1h', dead: 'forever', cancelled: 0.5 + 1 },
      configVersion: 4,
    }
    expect(queueConfig(queue('media', options))).toEqual({
      registration: {
        name: 'media',
        configVersion: 4,
        globalConcurrency: 5,
        releaseWhileWaiting: true,
        rateLimit: { limit: 100, periodMs: 60_000 },
        priorityEnabled: true,
        partitioned: true,
        retention: { success: 3_600_000, error: null, dead: null, cancelled: 2 },
      },
      workerConcurrency: 2,
      maxTasksPerIteration: 10,
      basePollingMs: 300_000,
      maxPollingMs: 300_000,
      leaseMs: 60_000,
      maxAttempts: 7,
      backoff: { baseMs: 2_000, factor: 2, maxMs: 300_000, jitter: 0.5 },
    })
    expect(queueConfig(queue('logs', { retention: 'forever' }))?.registration.retention).toEqual({
      ...{ success: null, error: null, dead: null, cancelled: null },
    })
  })
})

describe('the queues of an engine', () => {
  const echo = workflow('echo', async (_ctx, value: unknown) => value)
  const store = memory()
  const good = { store, definitions: [echo], logger }

  it('Q4 are queues, each of its own name', () => {
    for (const queues of ['media', { name: 'media' }, null, 5]) {
      expect(thrown(() => new Engine({ ...good, queues: untyped(queues) }))).toBeInstanceOf(ConfigurationError)
    }
    for (const entry of ['media', { name: 'media' }, null, undefined, 5]) {
      const error = thrown(() => new Engine({ ...good, queues: [untyped(entry)] }))
      expect(error.message).toMatch(/has an entry that is no queue/)
    }
    const twice = thrown(() => new Engine({ ...good, queues: [queue('media'), queue('media')] }))
    expect(twice).toBeInstanceOf(DuplicateQueueError)
    expect(twice).toMatchObject({ queue: 'media' })
  })

  it('Q22 those that it listens to are among them', () => {
    const queues = [queue('media'), queue('email')]
    const error = thrown(() => new Engine({ ...good, queues, listenQueues: ['media', 'emial'] }))
    expect(error).toBeInstanceOf(UnknownQueueError)
    expect(error).toMatchObject({ queue: 'emial', known: ['media', 'email'] })
    expect(thrown(() => new Engine({ ...good, queues, listenQueues: untyped('media') }))).toBeInstanceOf(
      ConfigurationError,
    )
    expect(thrown(() => new Engine({ ...good, listenQueues: untyped([undefined]) }))).toBeInstanceOf(UnknownQueueError)
    expect(() => new Engine({ ...good, queues, listenQueues: [] })).not.toThrow()
    expect(() => new Engine({ ...good, queues: [], listenQueues: [] })).not.toThrow()
  })

  it('those of its definitions are among them', () => {
    const convert = workflow('convert', { queue: 'media' }, async () => {})
    const error = thrown(() => new Engine({ ...good, definitions: [convert], queues: [queue('email')] }))
    expect(error).toBeInstanceOf(UnknownQueueError)
    expect(error).toMatchObject({ queue: 'media', known: ['email'] })
    expect(() => new Engine({ ...good, definitions: [convert], queues: [queue('media')] })).not.toThrow()
  })

  it('a version is a name', () => {
    for (const version of ['', 'a\n', 'x'.repeat(256), 5, null]) {
      expect(thrown(() => new Engine({ ...good, version: untyped(version) }))).toBeInstanceOf(InvalidIdError)
    }
  })
})

describe('what a workflow says of queues', () => {
  const of = (options: unknown): PerdureError => thrown(() => workflow('convert', untyped(options), async () => {}))

  it('its queue is a name', () => {
    for (const name of ['', 'a\n', 5, null, 'perdure:x', queue('media')]) {
      expect(of({ queue: name })).toBeInstanceOf(InvalidIdError)
    }
  })

  it('its retention is of at least a millisecond', () => {
    expect(of({ retention: { success: 0 } })).toBeInstanceOf(ConfigurationError)
    expect(of({ retention: { success: 'soon' } })).toBeInstanceOf(InvalidDurationError)
    expect(of({ retention: '7d' }).message).toContain("workflow 'convert'.retention")
  })

  it('its name is none of the library', () => {
    expect(thrown(() => workflow('perdure:x', async () => {}))).toBeInstanceOf(InvalidIdError)
  })
})
