/** Why a run is not running: every reason that the store and the registered processes tell. */
import type { EpochMs } from '../core/clock.ts'
import { isDead } from '../runtime/host.ts'
import type { Situation, Store } from '../store/contract.ts'
import { isTerminal, type ProcessRecord, type RunRecord } from '../store/records.ts'
import { Explanation, type Reason } from './explanation.ts'
import { toAttempt } from './run.ts'

/** undefined: no such run. What it says was true at some instant of the call. */
export async function explain(store: Store, id: string): Promise<Explanation | undefined> {
  const situation = await store.situation(id)
  if (situation === undefined) return undefined
  const { definition, queue, status } = situation.run
  const reasons = await reasonsOf(store, situation)
  return new Explanation({ runId: id, definition, queue: queue ?? undefined, status, reasons })
}

async function reasonsOf(store: Store, situation: Situation): Promise<readonly Reason[]> {
  const { run } = situation
  const now = store.clock.now()
  if (isTerminal(run.status)) {
    const attempts = (await store.attempts(run.id)).map(toAttempt)
    const { status, failureKind, endedAt } = run
    return [
      { type: 'ended', status, failureKind: failureKind ?? undefined, endedAt: new Date(endedAt ?? now), attempts },
    ]
  }
  const processes = await store.processes()
  if (run.status === 'PENDING') return runningReasons(run, processes, now)
  const due = run.status === 'ENQUEUED' || (run.dueAt !== null && run.dueAt <= now)
  const unmet = due ? [] : await unmetReasons(store, situation)
  const lasting = [...queueReasons(situation), ...processReasons(situation, processes)]
  const full = due ? await limitReasons(store, situation) : []
  const ahead: readonly Reason[] =
    due && run.status !== 'WAITING' && situation.ahead > 0 ? [{ type: 'ahead', count: situation.ahead }] : []
  const reasons = [...unmet, ...lasting, ...full, ...ahead]
  return reasons.length > 0 ? reasons : [{ type: 'due' }]
}

function runningReasons(run: RunRecord, processes: readonly ProcessRecord[], now: EpochMs): readonly Reason[] {
  const owner = processes.find((process) => process.owner === run.owner)
  const leaseUntil = run.leaseUntil ?? now
  const lost = leaseUntil <= now || (owner !== undefined && isDead(owner))
  const running: Reason = {
    type: 'running',
    executor: run.owner ?? 'unknown',
    leaseUntil: new Date(leaseUntil),
    lost,
  }
  return run.cancelRequested ? [running, { type: 'cancelRequested' }] : [running]
}

/** What a run that is not due waits for. */
async function unmetReasons(store: Store, { run, waits }: Situation): Promise<readonly Reason[]> {
  const { dueAt } = run
  if (run.status === 'DELAYED') return dueAt === null ? [] : [{ type: 'delayed', until: new Date(dueAt) }]
  const childIds = waits.flatMap((wait) => (wait.type === 'child' ? [wait.childId] : []))
  const children = childIds.length === 0 ? [] : await store.runs(childIds)
  return [
    ...waits.flatMap((wait): readonly Reason[] =>
      wait.type === 'signal' && wait.state === 'open' ? [{ type: 'waitingForSignal', key: wait.key }] : [],
    ),
    ...childIds.map(
      (childId, index): Reason => ({ type: 'waitingForChild', childId, status: children[index]?.status }),
    ),
    ...(dueAt === null
      ? []
      : [{ type: 'waitingForTime', until: new Date(dueAt), timeout: dueAt === run.deadlineAt } as const]),
  ]
}

function queueReasons({ run, queue }: Situation): readonly Reason[] {
  if (run.queue === null) return []
  if (queue === null) return [{ type: 'queueUnregistered', queue: run.queue }]
  return [
    ...(queue.paused ? [{ type: 'queuePaused', queue: queue.name } as const] : []),
    ...(run.lane === null ? [{ type: 'noPartitionKey', queue: queue.name } as const] : []),
  ]
}

/** The first that no live process meets: it has the definition, takes runs from the queue, is of the version. */
function processReasons({ run, queue }: Situation, processes: readonly ProcessRecord[]): readonly Reason[] {
  const { definition, version } = run
  const having = processes.filter((process) => process.definitions.includes(definition) && !isDead(process))
  if (having.length === 0) return [{ type: 'noProcess', definition }]
  const listening = having.filter((process) => run.queue === null || process.queues.includes(run.queue))
  if (listening.length === 0) {
    // That nobody takes from a queue which nobody has registered goes without saying.
    if (run.queue === null || queue === null) return []
    return [{ type: 'notListened', queue: run.queue, executors: having.map(({ owner }) => owner) }]
  }
  if (version === null || listening.some((process) => process.version === null || process.version === version))
    return []
  const versions = new Set(listening.flatMap((process) => process.version ?? []))
  return [{ type: 'otherVersion', version, versions: [...versions].sort() }]
}

/** Limits that have no room for a run that is due. A resume is no start, and holds its place already if it may. */
async function limitReasons(store: Store, situation: Situation): Promise<readonly Reason[]> {
  const { run, queue, active, holders, rateOpensAt } = situation
  if (queue === null || run.lane === null) return []
  const resume = run.status === 'WAITING'
  const place = { queue: queue.name, partitionKey: queue.partitioned ? run.lane : undefined }
  const limit = resume && !queue.releaseWhileWaiting ? null : queue.globalConcurrency
  const full = limit !== null && active >= limit
  return [
    ...(full
      ? [
          {
            ...({ type: 'globalConcurrency', ...place, limit, active, holders } as const),
            deadlocked: await deadlocked(store, situation),
          },
        ]
      : []),
    ...(resume || rateOpensAt === null
      ? []
      : [{ type: 'rateLimit', ...place, opensAt: new Date(rateOpensAt) } as const]),
  ]
}

/** Longer chains of parents are not followed. */
const LONGEST_LINEAGE = 20

/** Holders of the limit that wait for the run, or for a run that it descends from. */
async function deadlocked(store: Store, { run, queue, holders }: Situation): Promise<readonly string[]> {
  const lineage = await lineageOf(store, run)
  const ancestors = lineage.filter((each) => each.queue === run.queue && each.lane === run.lane).map(({ id }) => id)
  const ids = new Set(lineage.map(({ id }) => id))
  const waiting: string[] = []
  if (queue?.releaseWhileWaiting === true) return waiting
  for (const id of new Set([...holders, ...ancestors])) {
    if (id === run.id) continue
    const holder = await store.situation(id)
    if (holder?.run.status !== 'WAITING') continue
    if (holder.waits.some((wait) => wait.type === 'child' && ids.has(wait.childId))) waiting.push(id)
  }
  return waiting
}

/** The run, its parent, and so on. */
async function lineageOf(store: Store, run: RunRecord): Promise<readonly RunRecord[]> {
  const lineage = [run]
  let parentId = run.parentId
  while (parentId !== null && lineage.length < LONGEST_LINEAGE) {
    const [parent] = await store.runs([parentId])
    if (parent === undefined) break
    lineage.push(parent)
    parentId = parent.parentId
  }
  return lineage
}
