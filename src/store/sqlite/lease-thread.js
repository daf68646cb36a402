/**
 * The lease thread itself: renews the claims on its list while the main thread can't, for as long as that thread
 * has shown a sign of life within `maxBlockedMs`. Plain JavaScript, as a worker can't start on TypeScript on every
 * Node that is supported; lease-thread-host.ts starts it and speaks for it.
 *
 * It waits for locks inside SQLite, which blocks nobody but itself. What it can't get over ends it, and the host is
 * told by the worker's own error.
 */
import { statSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'

/**
 * @typedef {import('./lease-thread-host.ts').ThreadData} ThreadData
 * @typedef {import('../lease-thread-host.ts').ThreadOrder} ThreadOrder
 * @typedef {import('./lease-thread-host.ts').ThreadConnection} ThreadConnection
 */

/** @type {ThreadData} */
const { driver, path, leaseMs, maxBlockedMs, lookEveryMs, heartbeat, renewSql } = workerData

const { connection, begin, commit, renewOne } = await connect().catch(fail)

/** By token. @type {Map<string, { readonly runId: string, readonly since: number }>} */
const held = new Map()
let lastBeat = Atomics.load(heartbeat, 0)
let lastBeatAt = performance.now()
let lastRoundAt = performance.now()

const timer = setInterval(look, lookEveryMs)
parentPort?.on('message', obey)

async function connect() {
  const module = await import(driver)
  // A driver would create a file that is gone.
  statSync(path)
  /** @type {ThreadConnection} */
  const connection = new (driver === 'node:sqlite' ? module.DatabaseSync : module.default)(path)
  // No sync: a renewal that a power cut takes back is of a claim whose process it took as well.
  connection.exec(`pragma busy_timeout = ${Math.ceil(leaseMs / 6)}; pragma synchronous = normal`)
  const begin = connection.prepare('begin immediate')
  return { connection, begin, commit: connection.prepare('commit'), renewOne: connection.prepare(renewSql) }
}

/** @param {ThreadOrder} order */
function obey({ hold, drop, stop }) {
  const since = performance.now()
  for (const { runId, token } of hold) held.set(token, { runId, since })
  for (const token of drop) held.delete(token)
  if (!stop) return
  clearInterval(timer)
  connection.close()
  parentPort?.close()
}

function look() {
  const now = performance.now()
  const beat = Atomics.load(heartbeat, 0)
  if (beat !== lastBeat) {
    lastBeat = beat
    lastBeatAt = now
  }
  if (now - lastBeatAt >= maxBlockedMs || now - lastRoundAt < leaseMs / 3) return
  try {
    renewRound(now)
    lastRoundAt = now
  } catch (error) {
    // The lock was not to be had in time: the next look tries again.
    if (!isBusy(error)) fail(error)
  }
}

/**
 * Most claims live for milliseconds: those younger than a sixth of the lease can wait for the next round.
 * @param {number} now
 */
function renewRound(now) {
  const due = [...held].filter(([, { since }]) => now - since >= leaseMs / 6)
  if (due.length === 0) return
  const lost = []
  const cancelRequested = []
  begin.run()
  const leaseUntil = Date.now() + leaseMs
  for (const [token, { runId }] of due) {
    const row = renewOne.get(leaseUntil, runId, token)
    if (row === undefined) lost.push(token)
    else if (row.cancel_requested !== 0) cancelRequested.push(token)
  }
  commit.run()
  for (const token of lost) held.delete(token)
  parentPort?.postMessage({ lost, cancelRequested })
}

/**
 * Ends the thread. A driver's own error class would arrive in the main thread without its message.
 * @param {unknown} error
 * @returns {never}
 */
function fail(error) {
  throw new Error(error instanceof Error ? error.message : String(error))
}

/** @param {unknown} error */
function isBusy(error) {
  if (!(error instanceof Error)) return false
  if ('errcode' in error) return Number(error.errcode) % 256 === 5
  return 'code' in error && String(error.code).startsWith('SQLITE_BUSY')
}
