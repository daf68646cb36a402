/**
 * `ctx.start` and `child.result`. A child is started by the commit that records its start, so it is there if and only if
 * the record is, and a replay finds the same one. Its end is awaited like a signal: in memory for a moment, then by the
 * store, while the parent is suspended.
 */
import { RunNotFoundError } from '../../core/errors.ts'
import { sha256Hex } from '../../core/ids.ts'
import { invariant } from '../../core/invariant.ts'
import type { NewRun } from '../../store/commands.ts'
import type { Ending } from '../../store/records.ts'
import { failureError } from '../failure.ts'
import { refusalError } from '../refusal.ts'
import type { Argument } from './argument.ts'
import type { Call } from './call.ts'
import type { Pass } from './pass.ts'

/** A run that a body has started. */
export interface StartedRun {
  readonly id: string
  /** False: it was there already. */
  readonly created: boolean
}

/** What a start is stored as; rejects if it is refused before it comes to the store. */
export type Prepare = (
  input: unknown,
  placing: { readonly id: string; readonly parentId: string | null },
) => Promise<NewRun>

export interface ChildStart {
  readonly definition: string
  readonly input: Argument
  readonly detached: boolean
  readonly prepare: Prepare
}

export async function beginStart(pass: Pass, call: Call, start: ChildStart): Promise<void> {
  const run = await prepared(pass, call, start)
  if (run === undefined) return
  const outcome = await pass.recording.perform(call, { type: 'start', run })
  if (outcome?.type === 'refused') pass.recordError(call, refusalError(outcome.refusal, start.definition))
}

/** undefined: the start was refused, which is recorded, or the pass has ended. */
async function prepared(pass: Pass, call: Call, start: ChildStart): Promise<NewRun | undefined> {
  const { input, detached, prepare } = start
  if ('refusal' in input) {
    pass.recordError(call, input.refusal)
    return undefined
  }
  const placing = { id: childId(pass, call.position), parentId: detached ? null : pass.runId }
  // A schema's validation is a function of the user's; nothing comes of it if the pass ends.
  const leave = pass.enter({ isUserCode: true, abort: () => leave() })
  try {
    return await pass.recording.patiently(() => prepare(pass.codec.decode(input.text), placing))
  } catch (error) {
    pass.recordError(call, error)
    return undefined
  } finally {
    leave()
  }
}

/** Ids of runs are no longer than this (core/names.ts). */
const LONGEST_ID_BYTES = 128

/** Found again by every replay, and another one in each epoch: a requeue starts anew what it does not keep. */
function childId({ runId, epoch }: Pass, position: number): string {
  return fitting(epoch === 0 ? `${runId}~${position}` : `${runId}~${epoch}.${position}`)
}

/**
 * The id of the run that a step has started by its effects, the `index`-th of them. Numbers are three, so that it is no
 * child's. It is the same on every attempt of the step, like the step's idempotency key: of all attempts only one is
 * committed, with its effects, so only one can ever use it, and a resend of that commit finds its own run.
 */
export function followUpId({ runId, epoch }: Pass, position: number, index: number): string {
  return fitting(`${runId}~${epoch}.${position}.${index}`)
}

function fitting(id: string): string {
  return Buffer.byteLength(id) > LONGEST_ID_BYTES ? sha256Hex(id) : id
}

/** What `perform` has the store record of a start. */
export function startedRun(value: unknown): StartedRun {
  invariant(isStartedRun(value), 'the record of a start tells the id of its run')
  return value
}

function isStartedRun(value: unknown): value is StartedRun {
  if (typeof value !== 'object' || value === null || !('id' in value) || !('created' in value)) return false
  return typeof value.id === 'string' && typeof value.created === 'boolean'
}

// ── Awaiting a run ──────────────────────────────────────────────────────────────────────────────────────────────

export async function beginResult(pass: Pass, call: Call, runId: string): Promise<void> {
  const ended = await pass.recording.ask(() => pass.port.ending(runId))
  if (pass.over) return
  if (ended !== undefined) return recordResult(pass, call, runId, ended)
  const release = pass.port.onEnded(runId, (later) => {
    pass.unpark(call)
    void recordResult(pass, call, runId, later)
  })
  pass.park(call, { awaits: { runId }, wakeAt: null, release })
}

/** The output is passed on as it is stored. */
async function recordResult(pass: Pass, call: Call, runId: string, ended: Ending | 'missing'): Promise<void> {
  if (ended === 'missing') return pass.recordError(call, new RunNotFoundError({ runId }))
  if (ended.status === 'SUCCESS') return pass.record(call, { failed: false, value: ended.output })
  try {
    const attempts = async (): Promise<number> => (await pass.recording.ask(() => pass.port.attempts(runId))) ?? 0
    pass.recordError(call, await failureError(runId, ended, { codec: pass.codec, attempts }))
  } catch (error) {
    pass.recordError(call, error)
  }
}
