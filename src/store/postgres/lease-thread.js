/**
 * The lease thread itself: renews the claims on its list while the main thread can't, for as long as that thread
 * has shown a sign of life within `maxBlockedMs`. Plain JavaScript, as a worker can't start on TypeScript on every
 * Node that is supported; lease-thread-host.ts starts it and speaks for it.
 *
 * It connects when there is something to renew for the first time, which most claims are too short for. A connection
 * that is lost is made anew at the next look. What ends the thread is that it can't connect at first, for a third of
 * the lease, or that the server refuses a statement for good; the host is told by the worker's own error. Rows that
 * others have locked come last.
 */
import { parentPort, workerData } from 'node:worker_threads'
import pg from 'pg'

/**
 * @typedef {import('./lease-thread-host.ts').ThreadData} ThreadData
 * @typedef {import('../lease-thread-host.ts').ThreadOrder} ThreadOrder
 * @typedef {{ readonly token: string, readonly runId: string }} Claim
 */

/** @type {ThreadData} */
const { connection, leaseMs, maxBlockedMs, lookEveryMs, heartbeat, renewSql, renewLockedSql } = workerData

/** More than one statement should renew. */
const BATCH = 1_000
const LONGEST_GOODBYE_MS = 500
/** Whatever the database's defaults are. */
const BEGIN = 'begin isolation level read committed read write'
/** For the lock of a row: what holds it longer, holds the claim as well. */
const LOCK_TIMEOUT_MS = Math.ceil(Math.min(50, leaseMs / 100))

/** By token. @type {Map<string, { readonly runId: string, since: number }>} */
const held = new Map()
let lastBeat = Atomics.load(heartbeat, 0)
let lastBeatAt = performance.now()
let lastRoundAt = performance.now()
let renewing = false
let stopping = false
/** @type {pg.Client | undefined} */
let client
/** When it was first tried to connect, as long as that hasn't worked. @type {number | undefined} */
let connectingSince
let everConnected = false
/** Transactions only read, unless they say that they write. */
let readsOnly = false

const timer = setInterval(look, lookEveryMs)
parentPort?.on('message', obey)

/** @param {ThreadOrder} order */
function obey({ hold, drop, stop }) {
  const since = performance.now()
  for (const { runId, token } of hold) held.set(token, { runId, since })
  for (const token of drop) held.delete(token)
  if (!stop) return
  stopping = true
  clearInterval(timer)
  disconnect()
  parentPort?.close()
}

function look() {
  const now = performance.now()
  const beat = Atomics.load(heartbeat, 0)
  if (beat !== lastBeat) {
    lastBeat = beat
    lastBeatAt = now
  }
  if (now - lastBeatAt >= maxBlockedMs || renewing) return
  const due = dueClaims(now)
  if (due.length === 0) return
  renewing = true
  renewRound(due)
    .catch(endure)
    .finally(() => {
      renewing = false
    })
}

/**
 * Most claims live for milliseconds: those younger than a sixth of the lease can wait for the next round, of which
 * there is one each third of it. Between rounds come those that a round has failed to renew.
 * @param {number} now
 */
function dueClaims(now) {
  const dueAfterMs = now - lastRoundAt >= leaseMs / 3 ? leaseMs / 6 : leaseMs / 2
  /** @type {Claim[]} */
  const due = []
  for (const [token, { runId, since }] of held) if (now - since >= dueAfterMs) due.push({ runId, token })
  return due
}

/** @param {readonly Claim[]} due */
async function renewRound(due) {
  const startedAt = performance.now()
  for (let from = 0; from < due.length; from += BATCH) {
    const locked = await renewFree(due.slice(from, from + BATCH))
    if (locked.length > 0) await renewLocked(locked)
  }
  lastRoundAt = startedAt
}

/**
 * Answers with those whose rows are locked.
 * @param {readonly Claim[]} claims
 */
async function renewFree(claims) {
  try {
    if (!readsOnly) return await renewAll(renewSql, claims)
  } catch (error) {
    if (stateOf(error) !== '25006') throw error
  }
  const connected = await connect()
  await connected.query(BEGIN)
  const locked = await renewAll(renewSql, claims)
  await connected.query('commit')
  readsOnly = true
  return locked
}

/**
 * Answers with those whose rows are locked.
 * @param {string} sql
 * @param {readonly Claim[]} claims
 */
async function renewAll(sql, claims) {
  const startedAt = performance.now()
  const ids = claims.map(({ runId }) => runId)
  const tokens = claims.map(({ token }) => token)
  const connected = await connect()
  /** @type {pg.QueryArrayResult<[string, string, boolean | null]>} */
  const { rows } = await connected.query({ text: sql, values: [ids, tokens, leaseMs, null], rowMode: 'array' })
  /** @type {string[]} */
  const lost = []
  /** @type {string[]} */
  const cancelRequested = []
  const locked = new Set()
  for (const [token, state, cancel] of rows) {
    const claim = held.get(token)
    if (state === 'lost') lost.push(token)
    else if (state === 'locked') locked.add(token)
    else if (claim !== undefined) claim.since = startedAt
    if (cancel === true) cancelRequested.push(token)
  }
  for (const token of lost) held.delete(token)
  parentPort?.postMessage({ lost, cancelRequested })
  return claims.filter(({ token }) => locked.has(token))
}

/**
 * Most are locked for a moment, by the commits of their own process; those that are locked for longer hold up no other.
 * @param {readonly Claim[]} claims
 */
async function renewLocked(claims) {
  const connected = await connect()
  try {
    await connected.query(`${BEGIN}; set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
    await renewAll(renewLockedSql, claims)
    await connected.query('commit')
  } catch (error) {
    if (!isLocked(error)) throw error
    await connected.query('rollback')
    if (claims.length === 1) return
    const half = Math.ceil(claims.length / 2)
    await renewLocked(claims.slice(0, half))
    await renewLocked(claims.slice(half))
  }
}

async function connect() {
  if (client !== undefined) return client
  connectingSince ??= performance.now()
  const connecting = new pg.Client({
    ...connection,
    connectionTimeoutMillis: Math.ceil(leaseMs / 3),
    query_timeout: Math.ceil(leaseMs / 3),
  })
  // Whoever waits for an answer is told of the loss; without a listener it would end the thread.
  connecting.on('error', () => {})
  connecting.on('end', () => {
    if (client === connecting) client = undefined
  })
  client = connecting
  await connecting.connect()
  everConnected = true
  return connecting
}

function disconnect() {
  const leaving = client
  client = undefined
  if (leaving === undefined) return
  const goodbye = setTimeout(() => leaving.connection.stream.destroy(), LONGEST_GOODBYE_MS)
  leaving.end().then(
    () => clearTimeout(goodbye),
    () => {},
  )
}

/** @param {unknown} error */
function endure(error) {
  if (stopping) return
  disconnect()
  const tried = performance.now() - (connectingSince ?? performance.now())
  if (isPassing(error) && (everConnected || tried < leaseMs / 3)) return
  clearInterval(timer)
  // A rejection would not do: the driver's own error class would arrive in the main thread without its message.
  setImmediate(() => {
    throw new Error(error instanceof Error ? error.message : String(error))
  })
}

/**
 * What the server says of the statement itself doesn't pass.
 * @param {unknown} error
 */
function isPassing(error) {
  const state = stateOf(error)
  return state === undefined || !['0A', '22', '23', '42'].includes(state.slice(0, 2))
}

/** @param {unknown} error */
function isLocked(error) {
  const state = stateOf(error)
  return state === '55P03' || state === '40P01'
}

/**
 * What PostgreSQL calls the error; undefined: it is not the server's.
 * @param {unknown} error
 */
function stateOf(error) {
  const isServers = error instanceof Error && 'severity' in error && 'code' in error
  return isServers ? String(error.code) : undefined
}
