/** What tests, and the processes that they start, ask of a store. */
import type { ClaimRequest, ClaimSource, NewQueue, NewRun, Store } from '../../../src/store/contract.ts'

export function newRun(id: string, run: Partial<NewRun> = {}): NewRun {
  return {
    id,
    definition: 'convert',
    kind: 'workflow',
    queue: null,
    priority: 0,
    partitionKey: null,
    dedup: null,
    due: null,
    input: '"intro"',
    inputHash: 'hash',
    maxRecoveries: 50,
    timeoutMs: null,
    parentId: null,
    kv: [],
    claim: null,
    ...run,
  }
}

export async function enqueue(store: Store, ...runs: readonly NewRun[]): Promise<void> {
  await store.commit([{ type: 'enqueue', commandId: `command of ${runs[0]?.id}`, runs }])
}

/** Of as many runs as there are tokens, from one queue. */
export function newClaim(
  tokens: readonly string[],
  { queue = null, room = 1_000, lanes = null, ...request }: Partial<ClaimRequest & ClaimSource> = {},
): ClaimRequest {
  const definitions = [{ name: 'convert', kind: 'workflow', maxRecoveries: 50, timeoutMs: null }] as const
  const sources = [{ queue, leaseMs: 60_000, room, lanes }]
  return { owner: 'o', tokens, definitions, version: null, sources, ...request }
}

export function newQueue(name: string, knobs: Partial<NewQueue> = {}): NewQueue {
  return {
    name,
    globalConcurrency: null,
    releaseWhileWaiting: false,
    rateLimit: null,
    priorityEnabled: false,
    partitioned: false,
    retention: null,
    configVersion: 0,
    ...knobs,
  }
}
