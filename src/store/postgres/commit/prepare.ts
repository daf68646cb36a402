/** Reads what the commands of a batch may touch, once all of it is locked. */
import type { EpochMs } from '../../../core/clock.ts'
import { createCodec } from '../../../core/codec.ts'
import { SerializationError } from '../../../core/errors.ts'
import { sha256Hex } from '../../../core/ids.ts'
import type { SignalWait } from '../../apply/rows.ts'
import { flag, number, numberOrNull, text, textOrNull, word } from '../../columns.ts'
import type { AwaitedRun, Command } from '../../commands.ts'
import type { RunRecord } from '../../records.ts'
import { UNREGISTERED } from '../queues.ts'
import { RUN_WIDTH, toRun } from '../runs.ts'
import type { Row, Transaction } from '../session.ts'
import { Interference } from '../session.ts'
import type { Loaded } from './load.ts'
import { load, QUEUES, RECORDED_ENTRIES } from './load.ts'
import { lockFirst, lockRuns, lockValues } from './lock.ts'
import { Needs } from './needs.ts'
import { Questions } from './questions.ts'
import { WorkingSet } from './working-set.ts'

/** Runs are found that have to be locked, again and again: children of children that are just being started. */
const MOST_LOOKS = 10

export async function prepare(
  transaction: Transaction,
  commands: readonly Command[],
): Promise<{ readonly rows: WorkingSet; readonly now: EpochMs }> {
  const needs = new Needs(commands)
  const rows = new WorkingSet()
  const lockedRuns = new Map<string, RunRecord>()
  const take = (runs: readonly RunRecord[]): void => {
    for (const run of runs) lockedRuns.set(run.id, run)
  }
  take(await lockFirst(transaction, needs))
  if (needs.values.size > 0) {
    for (const { key, hash } of await lockValues(transaction, needs.values)) rows.kv.load(key, hash)
  }
  const questions = new Questions(commands, needs, lockedRuns)
  const looked = await look(transaction, { needs, questions, lockedRuns, take })
  for (const run of lockedRuns.values()) rows.runs.loadLocked(run)
  rows.runs.loadAbsent(needs.runs)
  fill(rows, needs, questions, looked)
  await readQueues(transaction, rows)
  await readEntries(transaction, rows, questions, looked)
  return { rows, now: looked.now }
}

interface Look {
  readonly needs: Needs
  readonly questions: Questions
  readonly lockedRuns: ReadonlyMap<string, RunRecord>
  readonly take: (runs: readonly RunRecord[]) => void
}

/** Reads until everything that it finds is locked. */
async function look(transaction: Transaction, { needs, questions, lockedRuns, take }: Look): Promise<Loaded> {
  const names = new Set<string>()
  let first: Loaded | undefined
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const loaded = await load(transaction, questions.starts(first === undefined), questions.others)
    first ??= loaded
    const unregistered = questions.queues.filter((name) => !names.has(name) && !isIn(loaded.queues, name))
    for (const name of unregistered) names.add(name)
    if (unregistered.length > 0) await transaction.query(UNREGISTERED, [unregistered])
    const unlocked = (ids: readonly unknown[]): readonly string[] => ids.map(text).filter((id) => !lockedRuns.has(id))
    const relatives = unlocked(loaded.families)
    const receivers = unlocked(loaded.openWaits.filter((row) => needs.signals.has(text(row[2]))).map((row) => row[0]))
    const parents = unlocked(loaded.parents.map((row) => row[2]))
    const seen = unlocked([...loaded.seen, ...loaded.holders].map((row) => row[1]))
    const found = new Set([...relatives, ...receivers, ...parents])
    // It was not there when it was to be locked, and some of what is asked about it was not asked.
    const late = [...found, ...seen].some((id) => needs.runs.has(id))
    if (late) throw new Interference('a run was started')
    if (found.size > 0) take(await lockRuns(transaction, [...found]))
    // Whoever waits for a run that is locked does so still, unless its own row says otherwise now.
    const done = unregistered.length === 0 && relatives.length === 0 && receivers.length === 0
    if (done) return { ...loaded, places: first.places }
  }
  throw new Interference('runs keep being started')
}

function isIn(queues: readonly Row[], name: string): boolean {
  return queues.some((row) => row[0] === name)
}

/** Gives the working set what was read. */
function fill(rows: WorkingSet, needs: Needs, questions: Questions, loaded: Loaded): void {
  for (const row of [...loaded.seen, ...loaded.holders]) rows.runs.loadSeen(toSeen(rows, row))
  rows.runs.loadAbsent(needs.starts.map(({ id }) => id))
  rows.runs.loadPlaces(loaded.places.map(number))
  for (const row of loaded.queues) loadQueue(rows, row)
  for (const name of questions.queues) if (!rows.knowsQueue(name)) rows.loadQueue(name, null)
  for (const id of questions.waitingIds) rows.loadedWaits(id)
  for (const row of [...loaded.waits, ...loaded.openWaits]) rows.waits.load(toWait(row))
  for (const row of loaded.signals) rows.waits.loadBuffered(text(row[0]), text(row[1]))
  rows.waits.loadAwaiting(awaitedBy(loaded.parents))
  for (const row of loaded.receipts) {
    const receipt = { commandId: text(row[0]), outcome: text(row[1]) }
    rows.signalReceipts.load(receipt)
    rows.kvReceipts.load(receipt)
  }
}

const codec = createCodec()

/** A run that is only looked at. Its input comes with it if whoever wrote it could not compute the hash. */
function toSeen(rows: WorkingSet, row: Row): RunRecord {
  const run = toRun(row)
  const input = textOrNull(row[RUN_WIDTH])
  if (input === null || row[11] !== null) return run
  const inputHash = hashOf(input)
  if (inputHash === null) return run
  rows.hashes.set(run.seq, inputHash)
  return { ...run, inputHash }
}

/** null: it is no text of a value, so it equals none. */
function hashOf(input: string): string | null {
  try {
    return sha256Hex(codec.canonical(input))
  } catch (error) {
    if (SerializationError.is(error) || error instanceof SyntaxError) return null
    throw error
  }
}

const toState = word(['open', 'signalled', 'expired'] as const)

function toWait(row: Row): SignalWait {
  return {
    type: 'signal',
    runId: text(row[0]),
    position: number(row[1]),
    key: text(row[2]),
    state: toState(row[3]),
    payload: textOrNull(row[4]),
  }
}

function awaitedBy(parents: readonly Row[]): ReadonlyMap<string, readonly AwaitedRun[]> {
  const awaited = new Map<string, AwaitedRun[]>()
  for (const row of parents) {
    const run: AwaitedRun = { runId: text(row[0]), position: number(row[1]) }
    const parent = text(row[2])
    const others = awaited.get(parent)
    if (others === undefined) awaited.set(parent, [run])
    else others.push(run)
  }
  return awaited
}

function loadQueue(rows: WorkingSet, row: Row): void {
  rows.loadQueue(text(row[0]), { partitioned: flag(row[1]), priorityEnabled: flag(row[2]) })
}

/** Of queues that only the rows that were read name. */
async function readQueues(transaction: Transaction, rows: WorkingSet): Promise<void> {
  const names = [...rows.runs.queues].filter((name) => !rows.knowsQueue(name))
  if (names.length === 0) return
  for (const row of await transaction.query(QUEUES, [names])) loadQueue(rows, row)
  for (const name of names) if (!rows.knowsQueue(name)) rows.loadQueue(name, null)
}

/** Histories, and those of their entries that are sent again. */
async function readEntries(
  transaction: Transaction,
  rows: WorkingSet,
  questions: Questions,
  { histories }: Loaded,
): Promise<void> {
  const again: { readonly run: number; readonly first: number }[] = []
  const ids = new Map<number, string>()
  for (const row of histories) {
    const run = number(row[0])
    const last = numberOrNull(row[1])
    const asked = questions.histories.get(run)
    if (asked === undefined) continue
    rows.loadHistory(asked.id, last)
    if (last === null || asked.first > last) continue
    again.push({ run, first: asked.first })
    ids.set(run, asked.id)
  }
  if (again.length === 0) return
  const values = [again.map(({ run }) => run), again.map(({ first }) => first)]
  for (const row of await transaction.query(RECORDED_ENTRIES, values)) {
    const entry = { position: number(row[2]), verb: text(row[3]), name: text(row[4]), value: textOrNull(row[5]) }
    rows.loadEntry(ids.get(number(row[0])) ?? '', number(row[1]), entry)
  }
}
