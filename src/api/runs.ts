/** `engine.runs`: what the store knows of runs, their steps and their attempts, for people and for tools. */
import type { Codec } from '../core/codec.ts'
import { checkOptions, choiceOption, integerOption, textOption } from '../core/options.ts'
import type { Hub } from '../runtime/hub.ts'
import type {
  AttemptOutcome,
  CheckpointRecord,
  DefinitionKind,
  FailureKind,
  RunRecord,
  RunStatus,
} from '../store/records.ts'
import { RUN_STATUSES } from '../store/records.ts'
import { checkRunId } from './names.ts'

/** A run as it is now. */
export interface Run {
  readonly id: string
  readonly definition: string
  readonly kind: DefinitionKind
  readonly status: RunStatus
  /** Attempts since it was started or last requeued; resumes after a sleep and hand-backs don't count. */
  readonly attempt: number
  /** How often its process died, or lost its lease, under it; set back by a requeue. */
  readonly crashes: number
  /** How often it has been requeued. */
  readonly epoch: number
  /** The executor that holds it or held it last. */
  readonly executor: string | undefined
  readonly cancelRequested: boolean
  readonly createdAt: Date
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
  /** Of a WAITING run: when its timer wakes it. */
  readonly wakeAt: Date | undefined
  /** Of a run with a timeout, once it was claimed. */
  readonly deadline: Date | undefined
  readonly failureKind: FailureKind | undefined
}

export interface RunDetails extends Run {
  readonly input: unknown
  /** Of a run that ended SUCCESS. */
  readonly output?: unknown
  /** What a run that ended ERROR or DEAD failed with, as it was thrown. */
  readonly error?: unknown
}

/** A recorded durable call. */
export interface StepRecord {
  readonly position: number
  /** 'step', 'sleep', 'now'. */
  readonly kind: string
  /** Empty for calls without a name. */
  readonly name: string
  readonly status: 'SUCCESS' | 'ERROR' | 'WAITING'
  readonly output?: unknown
  readonly error?: unknown
  readonly attempts: number
  /** Of a sleep. */
  readonly wakeAt?: Date | undefined
  readonly recordedAt: Date
}

export interface Attempt {
  readonly epoch: number
  readonly attempt: number
  readonly outcome: AttemptOutcome
  readonly executor: string | undefined
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
  readonly failureKind: FailureKind | undefined
}

export interface ListOptions {
  readonly status?: RunStatus | readonly RunStatus[]
  readonly definition?: string
  /** At most this many; a page never has more than 1,000. Default 100. */
  readonly limit?: number
  /** The `cursor` of the page before; one that is none of ours gives an empty page. */
  readonly cursor?: string
}

/** Newest first. `cursor` is undefined on the last page. */
export interface RunPage {
  readonly runs: readonly Run[]
  readonly cursor: string | undefined
}

export interface Runs {
  /** undefined if there is no such run. */
  get(id: string): Promise<RunDetails | undefined>
  /** @throws ConfigurationError for an unknown status, a limit that is no whole number of at least 0, or no text as cursor. */
  list(options?: ListOptions): Promise<RunPage>
  /** Recorded durable calls in the order of their outcomes, then sleeps that go on. Empty for an unknown run. */
  steps(id: string): Promise<readonly StepRecord[]>
  /** Oldest first; the last is the current one. Empty for an unknown run, and one that was never claimed. */
  attempts(id: string): Promise<readonly Attempt[]>
}

const LONGEST_PAGE = 1_000

export function runsOf(hub: () => Promise<Hub>, codec: Codec): Runs {
  return {
    get: async (id) => {
      checkRunId(id)
      const { store } = await hub()
      const [[run], [input], endings] = await Promise.all([store.runs([id]), store.inputs([id]), store.endings([id])])
      if (run === undefined || input === undefined) return undefined
      const ending = endings.get(id)
      const details = { ...toRun(run), input: codec.decode(input) }
      if (ending === undefined || ending === 'missing') return details
      if (ending.status === 'SUCCESS') return { ...details, output: codec.decode(ending.output) }
      return ending.failure.error === null ? details : { ...details, error: codec.decode(ending.failure.error) }
    },
    list: async (options = {}) => {
      const request = listRequest(options)
      if (request === undefined || request.limit === 0) return { runs: [], cursor: undefined }
      const { store } = await hub()
      const found = await store.list({ ...request, limit: request.limit + 1 })
      const page = found.slice(0, request.limit)
      const last = page[page.length - 1]
      const more = found.length > request.limit && last !== undefined
      return { runs: page.map(toRun), cursor: more ? String(last.seq) : undefined }
    },
    steps: async (id) => {
      checkRunId(id)
      const { store } = await hub()
      return stepsOf((await store.histories([id])).get(id) ?? [], codec)
    },
    attempts: async (id) => {
      checkRunId(id)
      const { store } = await hub()
      const attempts = await store.attempts(id)
      return attempts.map(({ owner, startedAt, endedAt, failureKind, ...attempt }) => ({
        ...attempt,
        executor: owner ?? undefined,
        startedAt: date(startedAt),
        endedAt: date(endedAt),
        failureKind: failureKind ?? undefined,
      }))
    },
  }
}

/** undefined if the cursor is none of ours: its page is empty. */
function listRequest(
  options: ListOptions,
): { status?: readonly RunStatus[]; definition?: string; limit: number; beforeSeq?: number } | undefined {
  checkOptions('runs.list', options, ['status', 'definition', 'limit', 'cursor'])
  const { status, definition, limit = 100, cursor } = options
  const statuses = status === undefined || Array.isArray(status) ? status : [status]
  for (const each of statuses ?? []) choiceOption('runs.list.status', each, RUN_STATUSES)
  integerOption('runs.list.limit', limit, 0)
  if (definition !== undefined) textOption('runs.list.definition', definition)
  if (cursor !== undefined && typeof cursor !== 'string') textOption('runs.list.cursor', cursor)
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) return undefined
  const beforeSeq = cursor === undefined ? undefined : Number(cursor)
  return {
    limit: Math.min(limit, LONGEST_PAGE),
    ...(statuses === undefined ? {} : { status: statuses }),
    ...(definition === undefined ? {} : { definition }),
    ...(beforeSeq === undefined ? {} : { beforeSeq }),
  }
}

function toRun(run: RunRecord): Run {
  return {
    id: run.id,
    definition: run.definition,
    kind: run.kind,
    status: run.status,
    attempt: run.attempt,
    crashes: run.crashes,
    epoch: run.epoch,
    executor: run.owner ?? undefined,
    cancelRequested: run.cancelRequested,
    createdAt: new Date(run.createdAt),
    startedAt: date(run.startedAt),
    endedAt: date(run.endedAt),
    wakeAt: run.status === 'WAITING' ? date(run.dueAt) : undefined,
    deadline: date(run.deadlineAt),
    failureKind: run.failureKind ?? undefined,
  }
}

function stepsOf(entries: readonly CheckpointRecord[], codec: Codec): readonly StepRecord[] {
  const wakeAt = new Map<number, Date>()
  const ended = new Set<number>()
  for (const entry of entries) {
    if (entry.type === 'timer') wakeAt.set(entry.position, new Date(Number(entry.value)))
    if (entry.type === 'outcome') ended.add(entry.position)
  }
  const steps = entries.filter(({ type, position }) => type === 'outcome' || (type === 'timer' && !ended.has(position)))
  const step = (entry: CheckpointRecord): StepRecord => ({
    position: entry.position,
    kind: entry.verb,
    name: entry.name,
    attempts: entry.attempts,
    recordedAt: new Date(entry.recordedAt),
    wakeAt: wakeAt.get(entry.position),
    ...outcomeOf(entry, codec),
  })
  return steps.map(step)
}

function outcomeOf(entry: CheckpointRecord, codec: Codec): Pick<StepRecord, 'status' | 'output' | 'error'> {
  if (entry.type === 'timer' || entry.value === null) return { status: 'WAITING' }
  const value = codec.decode(entry.value)
  return entry.failed ? { status: 'ERROR', error: value } : { status: 'SUCCESS', output: value }
}

function date(instant: number | null): Date | undefined {
  return instant === null ? undefined : new Date(instant)
}
