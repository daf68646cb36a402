/** `runs`: what the store knows of runs, their steps and their attempts, for people and for tools. */
import type { Codec } from '../core/codec.ts'
import { checkRunId } from '../core/names.ts'
import { checkOptions, choiceOption, integerOption, textOption } from '../core/options.ts'
import type { Hub } from '../runtime/hub.ts'
import type { ListRequest } from '../store/contract.ts'
import type { CheckpointRecord, RunStatus } from '../store/records.ts'
import { RUN_STATUSES } from '../store/records.ts'
import { explain } from './explain.ts'
import type { Explanation } from './explanation.ts'
import { type Attempt, type Run, type RunDetails, type StepRecord, toAttempt, toRun } from './run.ts'

export interface ListOptions {
  readonly status?: RunStatus | readonly RunStatus[]
  readonly definition?: string
  /** Those of this queue; unset: of all, and of none. */
  readonly queue?: string
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
  /**
   * Why the run is not running, or not any more: what it waits for, which limit is in its way and who holds it, a paused
   * queue, no live process that could run it, how it ended. undefined if there is no such run.
   *
   * @example
   * console.log(String(await engine.runs.explain('convert-intro')))
   */
  explain(id: string): Promise<Explanation | undefined>
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
      return attempts.map(toAttempt)
    },
    explain: async (id) => {
      checkRunId(id)
      return explain((await hub()).store, id)
    },
  }
}

/** undefined if the cursor is none of ours: its page is empty. */
function listRequest(options: ListOptions): ListRequest | undefined {
  checkOptions('runs.list', options, ['status', 'definition', 'queue', 'limit', 'cursor'])
  const { status, definition, queue, limit = 100, cursor } = options
  const statuses = status === undefined || Array.isArray(status) ? status : [status]
  for (const each of statuses ?? []) choiceOption('runs.list.status', each, RUN_STATUSES)
  integerOption('runs.list.limit', limit, 0)
  if (definition !== undefined) textOption('runs.list.definition', definition)
  if (queue !== undefined) textOption('runs.list.queue', queue)
  if (cursor !== undefined && typeof cursor !== 'string') textOption('runs.list.cursor', cursor)
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) return undefined
  const beforeSeq = cursor === undefined ? undefined : Number(cursor)
  return {
    limit: Math.min(limit, LONGEST_PAGE),
    ...(statuses === undefined ? {} : { status: statuses }),
    ...(definition === undefined ? {} : { definition }),
    ...(queue === undefined ? {} : { queue }),
    ...(beforeSeq === undefined ? {} : { beforeSeq }),
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
