/**
 * Who this process is, and whether another process of the same host is dead, so that a restart takes its
 * predecessor's work over at once instead of waiting for leases to end.
 *
 * A live process is never called dead: whatever can't be told for sure (another host, another boot, another pid
 * namespace, a system without /proc) is left to its lease.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { ProcessRecord } from '../store/records.ts'

export type ProcessIdentity = Pick<ProcessRecord, 'host' | 'pid' | 'pidStart' | 'bootId' | 'pidNamespace'>

/** What is asked of the operating system. Reads give null for what can't be read. */
export interface HostSystem {
  readonly pid: number
  hostname(): string
  readFile(path: string): string | null
  readLink(path: string): string | null
  /** False only if the system knows of no such process, whoever owns it. */
  exists(pid: number): boolean
}

/** Of this process. Fields that the platform doesn't tell (all but Linux) are null. */
export function processIdentity(system: HostSystem = realSystem): ProcessIdentity {
  return {
    host: system.hostname(),
    pid: system.pid,
    pidStart: statOf(system.pid, system)?.startTime ?? null,
    bootId: system.readFile('/proc/sys/kernel/random/boot_id')?.trim() || null,
    pidNamespace: namespaceOf(system),
  }
}

/** True only if the process is known to have ended. */
export function isDead(process: ProcessRecord, system: HostSystem = realSystem): boolean {
  if (process.pidStart === null || process.bootId === null || process.pidNamespace === null) return false
  const self = processIdentity(system)
  // The same host name with another boot id may be another machine as well as an earlier boot of this one.
  if (process.host !== self.host || process.bootId !== self.bootId) return false
  if (process.pidNamespace !== self.pidNamespace || self.pidStart === null) return false
  // Not by /proc: mounted with hidepid, it hides the living processes of other users.
  if (!system.exists(process.pid)) return true
  const stat = statOf(process.pid, system)
  if (stat === null) return false
  return stat.startTime !== process.pidStart || stat.ended
}

interface ProcStat {
  readonly startTime: string
  readonly ended: boolean
}

/** Positions after the command name, which is the second field and may itself hold spaces and parentheses. */
const STATE = 0
const THREADS = 17
const START_TIME = 19

function statOf(pid: number, system: HostSystem): ProcStat | null {
  const text = system.readFile(`/proc/${pid}/stat`)
  if (text === null || !text.startsWith(`${pid} (`)) return null
  const fields = text
    .slice(text.lastIndexOf(')') + 1)
    .trim()
    .split(' ')
  const startTime = fields[START_TIME]
  const threads = Number(fields[THREADS])
  if (startTime === undefined || !/^\d+$/.test(startTime) || !Number.isInteger(threads)) return null
  const state = fields[STATE]
  // A zombie has ended and waits for its parent to notice, unless only its main thread has ended.
  const ended = (state === 'Z' && threads <= 1) || state === 'X'
  return { startTime, ended }
}

/** A process in another time namespace would see other start times, so it counts as another namespace here. */
function namespaceOf(system: HostSystem): string | null {
  const pids = system.readLink('/proc/self/ns/pid')
  if (pids === null) return null
  const time = system.readLink('/proc/self/ns/time')
  return time === null ? pids : `${pids} ${time}`
}

function orNull<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}

const realSystem: HostSystem = {
  pid: process.pid,
  hostname,
  readFile: (path) => orNull(() => readFileSync(path, 'utf8')),
  readLink: (path) => orNull(() => readlinkSync(path)),
  exists: (pid) => {
    try {
      process.kill(pid, 0)
      return true
    } catch (error) {
      return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
    }
  },
}
