/** The first half of a claim: locks the queues, makes due runs claimable, and plans what to take. */
import type { EpochMs } from '../../../core/clock.ts'
import type { ClaimedRun, ClaimRequest } from '../../contract.ts'
import { QUEUE_COLUMNS, toQueue } from '../../queue-row.ts'
import type { QueueRecord } from '../../records.ts'
import type { Transaction } from '../session.ts'
import { Interference } from '../session.ts'
import { heldUnder } from './held.ts'
import type { Plan, Turn } from './plan.ts'
import { busySources, isLimited, leavesTrace, planFor, widened } from './plan.ts'
import { promoteDue } from './promote.ts'
import type { Scope, Survey, SurveyedSource } from './survey.ts'
import { survey } from './survey.ts'
import { reopenByTime } from './traces.ts'

/** What a claim is about to do. */
export interface Prepared {
  readonly plan: Plan
  /** Lanes that give nothing, found on the way. */
  readonly closed: readonly Turn[]
  /** What is known of the other sources. */
  readonly rest: Plan
  readonly held: readonly ClaimedRun[]
  /** Something was left for the next claim, which should come soon. */
  readonly unfinished: boolean
}

/** Surveys of one claim; the next claim goes on where it stopped. */
const MOST_SURVEYS = 4

export function narrow({ tokens }: ClaimRequest): Scope {
  return { lanes: tokens.length + 1, depth: 1, resumes: 1, noStart: new Map() }
}

export async function prepare(
  transaction: Transaction,
  asked: ClaimRequest,
  look: Survey,
  now: EpochMs | null,
): Promise<Prepared> {
  const sources = busySources(look, asked)
  const request = { ...asked, sources }
  const busy = look.sources.filter(({ source }) => sources.includes(source))
  const rest = planFor({ ...look, sources: look.sources.filter(({ source }) => !sources.includes(source)) }, 0, [])
  const limited = busy.filter(({ queue }) => isLimited(queue))
  const others = busy.filter(({ queue }) => !isLimited(queue))
  const promotes = busy.some(({ promotable }) => promotable)
  const queues = await lock(transaction, LOCK_LIMITED, limited)
  if (promotes) {
    const shared = await lock(transaction, LOCK_OTHERS, others)
    await promoteDue(transaction, request, new Map([...shared, ...queues]), now)
  }
  const reopening = namesOf(busy.filter(({ reopens }) => reopens))
  if (reopening.length > 0) await reopenByTime(transaction, reopening, look.now)
  const held = look.held ? await heldUnder(transaction, request) : []
  const wanted = request.tokens.length - held.length
  if (!promotes && !look.held && limited.length === 0) {
    const plan = planFor({ ...look, sources: busy }, wanted, held)
    return { plan, closed: [], rest, held, unfinished: false }
  }
  const closed: Turn[] = []
  let scope: Scope = narrow(request)
  for (let surveys = 1; ; surveys += 1) {
    const found = await survey(transaction, request, scope, now)
    for (const { queue } of found.sources) admit(queue, queues)
    const plan = planFor(found, wanted, held)
    const wider = widened(plan, scope, wanted)
    if (wider === undefined || surveys === MOST_SURVEYS) {
      const left = found.sources.some(({ promotable, reopens }) => promotable || reopens)
      return { plan, closed, rest, held, unfinished: left || wider !== undefined }
    }
    closed.push(...plan.turns.filter((turn) => turn.taken === 0 && leavesTrace(turn)))
    scope = wider
  }
}

export const LOCK_LIMITED = `
select ${QUEUE_COLUMNS} from perdure.queues where name = any ($1::text[]) order by name for no key update`
export const LOCK_OTHERS = `
select ${QUEUE_COLUMNS} from perdure.queues where name = any ($1::text[]) order by name for share`

async function lock(
  transaction: Transaction,
  sql: string,
  sources: readonly SurveyedSource[],
): Promise<ReadonlyMap<string, QueueRecord>> {
  const names = namesOf(sources)
  const rows = names.length === 0 ? [] : await transaction.query(sql, [names])
  return new Map(rows.map(toQueue).map((queue) => [queue.name, queue]))
}

/** A queue that has got limits since the look has to be locked first. */
function admit(queue: QueueRecord | null, locked: ReadonlyMap<string, QueueRecord>): void {
  if (queue !== null && isLimited(queue) && !locked.has(queue.name)) throw new Interference('a queue was changed')
}

function namesOf(sources: readonly SurveyedSource[]): readonly string[] {
  return sources.flatMap(({ queue }) => (queue === null ? [] : [queue.name]))
}
