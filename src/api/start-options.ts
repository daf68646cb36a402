/** The options of a start. */
import { type Duration, toWholeMs } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import { checkName, checkNewRunId, checkOwnName } from '../core/names.ts'
import { checkOptions, choiceOption, integerOption } from '../core/options.ts'
import type { NewDedup, NewDue } from '../store/contract.ts'

export interface StartOptions {
  /**
   * The run's id: 1 to 128 bytes of text without control characters and `~`. An id that exists gives the handle of the
   * existing run (`newlySubmitted: false`), if definition and input are the same. Default: a new UUIDv7.
   */
  readonly id?: string
  /** For the whole run, from its first claim; overrides the definition's. When it is over, the run is CANCELLED. */
  readonly timeout?: Duration
  /**
   * The queue on which the run waits until a process that serves it has room. Default: the definition's; without either, the
   * run is run at once by the engine that starts it, and what a `Client` or an engine that isn't launched starts by any
   * engine with its definition.
   */
  readonly queue?: string
  /** The run is DELAYED for so long before it may be claimed. Only with a queue, and without `runAt`. */
  readonly delay?: Duration
  /** The run is DELAYED until then; an instant that is past means at once. Only with a queue, and without `delay`. */
  readonly runAt?: Date
  /**
   * On a queue with `priorityEnabled`: lower goes first, negative ones too. A whole number of 32 bits. On other queues it is
   * stored and takes no effect. Default 0.
   */
  readonly priority?: number
  /**
   * At most one run that has not ended has an id in a queue. The id is free again in the moment in which its run ends,
   * however it ends. Only with a queue.
   */
  readonly dedupId?: string
  /**
   * If another run has the `dedupId`: `'reject'` throws QueueDeduplicatedError, `'returnExisting'` gives the handle of
   * that run (`newlySubmitted: false`). Default `'reject'`.
   */
  readonly dedupPolicy?: 'reject' | 'returnExisting'
  /**
   * On a partitioned queue: whose turn the run takes. Every limit of the queue counts for each key by itself. A run without
   * a key is never run there. Only with a queue, and refused where the queue is not partitioned.
   */
  readonly partitionKey?: string
  /**
   * Values to put under keys of the KV space (`engine.kv`), in the commit that records the run, and only if this start makes
   * a new one.
   */
  readonly kv?: Readonly<Record<string, unknown>>
  /**
   * The client on which a transaction of yours is open, in the database of a PostgreSQL store: the start is part of it,
   * and the run is there for others once it is committed. It is always enqueued. See docs/transactions.md.
   */
  readonly tx?: CallerTransaction
}

/** A client of `pg`, or whatever else runs a statement and answers with `{ rows }` or with the rows. */
export interface CallerTransaction {
  query(text: string, values: unknown[]): unknown
}

/** What follows a definition or its name: a definition without input is started without one. */
export type StartArgs<I> = undefined extends I
  ? [input?: I, options?: StartOptions]
  : [input: I, options?: StartOptions]

export interface CheckedStart {
  readonly id: string | undefined
  readonly timeoutMs: number | undefined
  readonly queue: string | undefined
  readonly due: NewDue | null
  readonly priority: number
  readonly dedup: NewDedup | null
  readonly partitionKey: string | null
  readonly kv: readonly (readonly [key: string, value: unknown])[]
  readonly tx: CallerTransaction | undefined
}

export const START_OPTIONS: readonly string[] = [
  'id',
  'timeout',
  'queue',
  'delay',
  'runAt',
  'priority',
  'dedupId',
  'dedupPolicy',
  'partitionKey',
  'kv',
  'tx',
]
const NO_OPTIONS: CheckedStart = {
  id: undefined,
  timeoutMs: undefined,
  queue: undefined,
  due: null,
  priority: 0,
  dedup: null,
  partitionKey: null,
  kv: [],
  tx: undefined,
}
/** What every database has a column for. */
const LOWEST_PRIORITY = -(2 ** 31)
const HIGHEST_PRIORITY = 2 ** 31 - 1

/** @throws ConfigurationError, InvalidIdError, InvalidDurationError */
export function checkStart(options: StartOptions | undefined): CheckedStart {
  if (options === undefined) return NO_OPTIONS
  checkOptions('start', options, START_OPTIONS)
  const { id, timeout, queue, priority, partitionKey, kv, tx } = options
  if (id !== undefined) checkNewRunId(id)
  if (queue !== undefined) checkOwnName('queue name', queue)
  if (partitionKey !== undefined) checkName('partition key', partitionKey)
  return {
    id,
    timeoutMs: timeout === undefined ? undefined : toWholeMs(timeout, 'start.timeout'),
    queue,
    due: dueOf(options),
    priority: priority === undefined ? 0 : integerOption('start.priority', priority, LOWEST_PRIORITY, HIGHEST_PRIORITY),
    dedup: dedupOf(options),
    partitionKey: partitionKey ?? null,
    kv: kv === undefined ? [] : entriesOf(kv),
    tx,
  }
}

/** Refuses options that say something about a queue, where there is none. */
export function checkUnqueued(options: CheckedStart): void {
  const { due, dedup, partitionKey } = options
  if (due === null && dedup === null && partitionKey === null) return
  const option = due !== null ? (due.type === 'after' ? 'delay' : 'runAt') : dedup !== null ? 'dedupId' : 'partitionKey'
  throw new ConfigurationError({
    option: `start.${option}`,
    problem: 'it is for runs on a queue, and this one is on none',
    allowed: `${option} beside queue, or with a definition that has one`,
  })
}

function dueOf({ delay, runAt }: StartOptions): NewDue | null {
  if (delay !== undefined && runAt !== undefined) {
    const problem = 'it is given beside runAt, and both say when'
    throw new ConfigurationError({ option: 'start.delay', problem, allowed: 'either of them' })
  }
  if (delay !== undefined) return { type: 'after', ms: toWholeMs(delay, 'start.delay') }
  if (runAt === undefined) return null
  const instant = runAt instanceof Date ? runAt.getTime() : Number.NaN
  if (!Number.isNaN(instant)) return { type: 'at', instant }
  throw new ConfigurationError({ option: 'start.runAt', problem: 'it is not a valid Date', allowed: 'a Date' })
}

function dedupOf({ dedupId, dedupPolicy }: StartOptions): NewDedup | null {
  const policy =
    dedupPolicy === undefined
      ? 'reject'
      : choiceOption('start.dedupPolicy', dedupPolicy, ['reject', 'returnExisting'] as const)
  if (dedupId !== undefined) {
    checkName('dedupId', dedupId)
    return { id: dedupId, policy }
  }
  if (dedupPolicy === undefined) return null
  const problem = 'it says what to do about a dedupId, and none is given'
  throw new ConfigurationError({ option: 'start.dedupPolicy', problem, allowed: 'dedupPolicy beside dedupId' })
}

function entriesOf(kv: Readonly<Record<string, unknown>>): CheckedStart['kv'] {
  if (typeof kv !== 'object' || kv === null || Array.isArray(kv) || kv instanceof Map) {
    throw new ConfigurationError({
      option: 'start.kv',
      problem: 'it is no plain object',
      allowed: '{ key: value, ... }',
    })
  }
  const entries = Object.entries(kv)
  for (const [key] of entries) checkOwnName('KV key', key)
  return entries
}
