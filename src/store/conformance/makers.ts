/** What conformance tests send and expect, so that each says only what it is about. */
import type { EpochMs } from '../../core/clock.ts'
import type {
  AcceptedRun,
  AppliedOutcome,
  AwaitedRun,
  EnqueueOutcome,
  NewCheckpoint,
  NewClaim,
  NewRun,
  Settlement,
} from '../contract.ts'
import type { ProcessRecord } from '../records.ts'

export const LEASE_MS = 30_000
export const OWNER = 'worker-1'
export const DEFINITION = 'charge'

type NewProcess = Omit<ProcessRecord, 'registeredAt'>

/** `run 0`, `run 1`, ... */
export function numbered(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `${prefix} ${n}`)
}

export function newRun(id: string, run: Partial<NewRun> = {}): NewRun {
  return {
    id,
    definition: DEFINITION,
    kind: 'workflow',
    queue: null,
    priority: 0,
    partitionKey: null,
    dedup: null,
    due: null,
    input: `{"order":"${id}"}`,
    inputHash: `hash of ${id}`,
    maxRecoveries: 50,
    timeoutMs: null,
    parentId: null,
    kv: [],
    claim: null,
    ...run,
  }
}

export function newClaim(token: string, claim: Partial<NewClaim> = {}): NewClaim {
  return { token, owner: OWNER, leaseMs: LEASE_MS, version: null, ...claim }
}

/** As a process registers that says nothing of how others can tell its death. */
export function newProcess(owner: string, process: Partial<NewProcess> = {}): NewProcess {
  return {
    owner,
    host: 'host-1',
    pid: 7,
    pidStart: null,
    bootId: null,
    pidNamespace: null,
    definitions: [],
    queues: [],
    version: null,
    ...process,
  }
}

/** A step's outcome at `seq`. */
export function outcome(seq: number, entry: Partial<NewCheckpoint> = {}): NewCheckpoint {
  return {
    seq,
    type: 'outcome',
    position: seq,
    verb: 'step',
    name: `step ${seq}`,
    failed: false,
    value: `"value ${seq}"`,
    calls: seq + 1,
    delivered: seq,
    notes: null,
    attempts: 1,
    ...entry,
  }
}

export const SUCCEED: Settlement = { type: 'succeed', output: '"done"' }
export const RELEASE: Settlement = { type: 'release' }
export const FAIL: Settlement = { type: 'fail', failure: { kind: 'error', error: '"no"' } }
export const CLAIM_LOST: { readonly type: 'claimLost' } = { type: 'claimLost' }

export function suspendUntil(wakeAt: EpochMs | null, ...children: readonly AwaitedRun[]): Settlement {
  return { type: 'suspend', wakeAt, children }
}

/** The outcome of a fenced command that left its run PENDING and changed no other, unless told otherwise. */
export function applied(fields: Partial<AppliedOutcome> = {}): AppliedOutcome {
  return {
    type: 'applied',
    status: 'PENDING',
    ending: null,
    cancelRequested: false,
    dueAt: null,
    rippled: false,
    refusals: [],
    ...fields,
  }
}

/** The outcome of a start: runs that were created ENQUEUED, unless told otherwise. */
export function accepted(
  ...runs: readonly (string | (Pick<AcceptedRun, 'id'> & Partial<AcceptedRun>))[]
): EnqueueOutcome {
  const fields = { created: true, status: 'ENQUEUED', caveat: null } as const
  return {
    type: 'accepted',
    runs: runs.map((run) => ({ ...fields, ...(typeof run === 'string' ? { id: run } : run) })),
  }
}
