/** What a dispatcher of a conformance test asks for: sources, definitions, and the queues behind them. */
import assert from 'node:assert/strict'
import type { EpochMs } from '../../core/clock.ts'
import type { ClaimableDefinition, ClaimOutcome, ClaimRequest, ClaimSource, NewQueue, NewRun } from '../contract.ts'
import { DEFINITION, LEASE_MS, newRun, OWNER } from './makers.ts'

/** A claim request as a test says it: definitions may go by their names alone. */
export interface ClaimFields extends Partial<Omit<ClaimRequest, 'tokens' | 'definitions'>> {
  readonly definitions?: readonly (string | ClaimableDefinition)[]
  /** Of the internal queue, where no sources are given. */
  readonly leaseMs?: number
}

export const INTERNAL: ClaimSource = { queue: null, leaseMs: LEASE_MS, room: 1_000, lanes: null }

/** A queue to claim from, with room for any number of runs. */
export function from(queue: string, fields: Partial<ClaimSource> = {}): ClaimSource {
  return { queue, leaseMs: LEASE_MS, room: 1_000, lanes: null, ...fields }
}

/** `running` runs of a lane count against `limit` already. */
export function lanes(
  limit: number,
  running: Readonly<Record<string, number>> = {},
): NonNullable<ClaimSource['lanes']> {
  return { limit, running: new Map(Object.entries(running)) }
}

export function claimable(name: string, fields: Partial<ClaimableDefinition> = {}): ClaimableDefinition {
  return { name, kind: 'workflow', maxRecoveries: 50, timeoutMs: null, ...fields }
}

export function claimRequest(tokens: readonly string[], fields: ClaimFields = {}): ClaimRequest {
  const { owner = OWNER, definitions = [DEFINITION], version = null, leaseMs = LEASE_MS } = fields
  const { sources = [{ ...INTERNAL, leaseMs }] } = fields
  const named = definitions.map((definition) => (typeof definition === 'string' ? claimable(definition) : definition))
  return { owner, tokens, definitions: named, version, sources }
}

/** What holds for every answer to a claim, whatever the test is about. */
export function assertClaim({ tokens }: ClaimRequest, { runs, nextAt }: ClaimOutcome, now: EpochMs): void {
  const given = runs.map(({ token }) => token)
  assert.equal(new Set(given).size, given.length, 'a token for each run')
  for (const { run, token } of runs) {
    assert.ok(tokens.includes(token), 'under a token of the request')
    assert.deepEqual([run.status, run.token], ['PENDING', token])
  }
  // Now, only if something was claimed and more is to come: who comes again at once must not find nothing.
  const next = nextAt ?? Number.POSITIVE_INFINITY
  assert.ok(next > now || (next === now && runs.length > 0), `a dispatcher that waits for ${next} at ${now} spins`)
}

export function newQueue(name: string, knobs: Partial<NewQueue> = {}): NewQueue {
  return {
    name,
    configVersion: 0,
    globalConcurrency: null,
    releaseWhileWaiting: false,
    rateLimit: null,
    priorityEnabled: false,
    partitioned: false,
    retention: null,
    ...knobs,
  }
}

/** Runs of one queue that differ by their ids alone. */
export function runsOf(queue: string, ids: readonly string[], run: Partial<NewRun> = {}): readonly NewRun[] {
  return ids.map((id) => newRun(id, { queue, ...run }))
}
