/** Why a run does not run, as far as the store knows. */
import type { EpochMs } from '../../core/clock.ts'
import type { Situation } from '../contract.ts'
import type { QueueRecord, RunRecord } from '../records.ts'
import type { Lane } from './lane.ts'
import type { Tables } from './tables.ts'

/** So many are named, and so many are counted. */
const HOLDERS_NAMED = 10
const AHEAD_COUNTED = 1_000

export function situation(tables: Tables, id: string, now: EpochMs): Situation | undefined {
  const run = tables.runs.get(id)
  if (run === undefined) return undefined
  const queue = tables.queue(run.queue)
  const lane = run.lane === null ? undefined : tables.runs.line(run.queue).lane(run.lane)
  const holders = lane === undefined || queue === null ? [] : holdersOf(tables, lane, queue)
  return {
    run,
    queue,
    active: holders.length,
    holders: holders.slice(0, HOLDERS_NAMED).map((holder) => holder.id),
    rateOpensAt: rateOpensAt(tables, run, queue, now),
    ahead: lane === undefined ? 0 : aheadOf(run, lane),
    waits: tables.waits.of(id),
  }
}

function holdersOf(tables: Tables, lane: Lane, queue: QueueRecord): readonly RunRecord[] {
  if (queue.globalConcurrency === null) return []
  return tables.runs.all(lane.holders(queue)).toSorted((a, b) => a.seq - b.seq)
}

/** Of those that have to be claimed to start. */
function aheadOf({ status, rank, seq }: RunRecord, { enqueued }: Lane): number {
  if (status !== 'ENQUEUED' && status !== 'DELAYED') return 0
  return Math.min(enqueued.countBefore({ rank, place: seq }), AHEAD_COUNTED)
}

function rateOpensAt(tables: Tables, { lane }: RunRecord, queue: QueueRecord | null, now: EpochMs): EpochMs | null {
  if (lane === null || queue === null || queue.rateLimit === null) return null
  return tables.ledger.room(queue.name, lane, queue.rateLimit, now).opensAt
}
