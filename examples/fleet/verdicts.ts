/** What must hold, judged by the journal outside of the database; of the store only what it says of its attempts. */
import type { Attempt } from 'perdure'
import { line, verdict } from '../demo/screen.ts'
import type { Entry } from './outside.ts'
import { CALLS, PAGES_AT_A_TIME } from './work.ts'

export interface Outcome {
  /** Runs that were accepted. */
  readonly accepted: readonly string[]
  /** Those of them whose result was awaited and came. */
  readonly ended: readonly string[]
  readonly entries: readonly Entry[]
  readonly attempts: ReadonlyMap<string, readonly Attempt[]>
  readonly workers: readonly string[]
  readonly victim: string
  readonly killedAt: number
}

export function judge(outcome: Outcome): void {
  line()
  judgeRuns(outcome)
  judgeTakeover(outcome)
  judgeLimits(outcome)
}

function judgeRuns({ accepted, ended, entries, attempts, workers, victim }: Outcome): void {
  const done = new Set(entries.filter(({ endedAt }) => endedAt !== undefined).map(({ run }) => run))
  const lost = accepted.filter((run) => !done.has(run))
  const by = workers.map((worker) => entries.filter((entry) => entry.worker === worker && entry.endedAt !== undefined))
  verdict(
    ended.length === accepted.length && lost.length === 0,
    `${done.size} of ${accepted.length} accepted runs did their work (${by.map((of) => of.length).join(', ')} by worker): none lost`,
  )
  const again = accepted.filter((run) => entries.filter((entry) => entry.run === run).length > 1)
  const excused = again.filter((run) =>
    attempts.get(run)?.some((attempt) => attempt.outcome === 'crashed' && workerOf(attempt) === victim),
  )
  verdict(
    again.length > 0 && excused.length === again.length,
    `${again.length} began twice, all of which ${victim} had in hand when it died: none doubled but these`,
  )
}

function judgeTakeover({ entries, victim, killedAt }: Outcome): void {
  const orphans = entries.filter((entry) => entry.worker === victim && entry.endedAt === undefined)
  const heirs = orphans.map(({ run }) => entries.find((entry) => entry.run === run && entry.worker !== victim))
  const delays = heirs.map((heir) => (heir === undefined ? Number.POSITIVE_INFINITY : heir.beganAt - killedAt))
  const by = [...new Set(heirs.map((heir) => heir?.worker ?? 'nobody'))].sort().join(' and ')
  verdict(
    orphans.length > 0 && Math.max(...delays) < 15_000,
    `its ${orphans.length} runs went on in ${by}, the last of them ${(Math.max(...delays) / 1_000).toFixed(1)} s after the kill`,
  )
}

function judgeLimits({ entries, attempts }: Outcome): void {
  const of = (queue: string): readonly Entry[] => entries.filter((entry) => entry.queue === queue)
  const most = (queue: string): number => Math.max(...of(queue).map(({ atATime }) => atATime))
  verdict(
    most('render') <= PAGES_AT_A_TIME,
    `render: ${most('render')} pages at a time at most, in all processes together (limit ${PAGES_AT_A_TIME})`,
  )
  const callsMade = [...new Set(of('api').map(({ run }) => run))].flatMap((run) => attempts.get(run) ?? [])
  const claimed = callsMade.map(({ startedAt }) => startedAt?.getTime() ?? 0)
  verdict(
    isWithinRate(claimed, CALLS.periodMs),
    `api: never more than ${CALLS.limit} calls started in any ${CALLS.periodMs} ms, by the clock of the database`,
  )
  const slowest = Math.max(...of('api').map((entry) => wayOf(entry, attempts)))
  verdict(
    slowest < CALLS.periodMs &&
      isWithinRate(
        of('api').map(({ beganAt }) => beganAt),
        CALLS.periodMs - slowest,
      ),
    `nor did more come to the journal, to which they were up to ${slowest} ms on their way`,
  )
  verdict(most('billing') === 1, `billing: one at a time for each customer`)
}

function isWithinRate(instants: readonly number[], periodMs: number): boolean {
  const sorted = [...instants].sort((a, b) => a - b)
  return sorted.every((at, n) => at - (sorted[n - CALLS.limit] ?? Number.NEGATIVE_INFINITY) >= periodMs)
}

/** How long it took from the claim, whose instant the store noted, until the call came to the journal. */
function wayOf({ run, worker, beganAt }: Entry, attempts: ReadonlyMap<string, readonly Attempt[]>): number {
  const attempt = attempts.get(run)?.find((one) => workerOf(one) === worker)
  return beganAt - (attempt?.startedAt?.getTime() ?? Number.NEGATIVE_INFINITY)
}

function workerOf({ executor = '' }: Attempt): string {
  return executor.split(':')[0] ?? ''
}
