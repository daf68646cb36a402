/**
 * Takes the claims of the dead away, so that their runs move on: those whose lease has ended, and at once those of
 * processes of this host that are known to have died. Runs at start (a restart resumes within a second), at the next
 * lease end, and every 5 s.
 */
import type { Random } from '../core/random.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { ReclaimedRun, Store } from '../store/contract.ts'
import type { ProcessRecord } from '../store/records.ts'
import type { Committer } from './committer/committer.ts'
import { isDead } from './host.ts'
import { type Round, Service, type ServiceFailure } from './service.ts'

export interface ReaperOptions {
  readonly store: Pick<Store, 'clock' | 'processes' | 'nextExpiry'>
  readonly committer: Pick<Committer, 'reclaim' | 'registerProcess' | 'removeProcesses'>
  /** This process, as it is registered at launch. */
  readonly self: Omit<ProcessRecord, 'registeredAt'>
  readonly scheduler: Scheduler
  readonly random: Random
  readonly onError: (failure: ServiceFailure) => void
  /** Called with every batch that was taken away, once it is committed. */
  readonly onReclaimed: (runs: readonly ReclaimedRun[]) => void
  /** Called first in every round: renews this engine's own overdue leases (LeaseKeeper.renewOverdue). */
  readonly beforeRound?: () => Promise<void>
  /** Whether a process is known to have died; by host.ts if unset. */
  readonly isDead?: (process: ProcessRecord) => boolean
}

const EVERY_MS = 5_000
/** A process registers again once a day, so one that has not for several is gone, on whichever host it was. */
const DAY_MS = 24 * 3_600_000
const GONE_AFTER_MS = 3 * DAY_MS
/** Bounds a round: however many claims expired at once, others' commits get their turns in between. */
const BATCH = 200

export function reaper(options: ReaperOptions): Service {
  const { store, scheduler, random, onError } = options
  return new Service({
    name: 'reaper',
    tick: () => round(options),
    clock: store.clock,
    scheduler,
    random,
    onError,
    errorDelay: { baseMs: 1_000, maxMs: EVERY_MS },
  })
}

async function round(options: ReaperOptions): Promise<Round> {
  const { store, committer, onReclaimed, beforeRound, isDead: knownDead = isDead } = options
  await beforeRound?.()
  const processes = await store.processes()
  const deadOwners = processes.filter((process) => knownDead(process)).map(({ owner }) => owner)
  const { runs: reclaimed } = await committer.reclaim({ deadOwners, limit: BATCH })
  if (reclaimed.length > 0) onReclaimed(reclaimed)
  if (reclaimed.length >= BATCH) return { dueAt: store.clock.now(), pollAfterMs: EVERY_MS }

  await tidyProcesses(options, processes, deadOwners)
  const nextExpiry = await store.nextExpiry()
  // One that has passed since is the next poll's: an answer of "now" that finds nothing would never rest.
  const dueAt = nextExpiry !== null && nextExpiry > store.clock.now() ? nextExpiry : null
  return { dueAt, pollAfterMs: EVERY_MS }
}

/** Keeps the list of processes short and true. Removing one that holds claims changes nothing, by contract. */
async function tidyProcesses(
  { store, committer, self }: ReaperOptions,
  processes: readonly ProcessRecord[],
  dead: readonly string[],
): Promise<void> {
  const now = store.clock.now()
  const own = processes.find(({ owner }) => owner === self.owner)
  if (own !== undefined && own.registeredAt < now - DAY_MS) await committer.registerProcess(self)
  const gone = processes.filter((it) => it.owner !== self.owner && it.registeredAt < now - GONE_AFTER_MS)
  const owners = [...new Set([...dead, ...gone.map(({ owner }) => owner)])]
  if (owners.length > 0) await committer.removeProcesses(owners)
}
