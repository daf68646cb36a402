import { spawn } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type HostSystem, isDead, processIdentity } from '../../src/runtime/host.ts'
import type { ProcessRecord } from '../../src/store/records.ts'
import { until } from './fast-scheduler.ts'

const BOOT = '/proc/sys/kernel/random/boot_id'

/** Fields 3 to 22 and some more of /proc/<pid>/stat. */
function stat(pid: number, startTime: string, { name = 'node', state = 'S', threads = 11 } = {}): string {
  const before = `${state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 0 ${threads} 0`
  return `${pid} (${name}) ${before} ${startTime} 990 991 992 993\n`
}

interface Faked {
  readonly files?: Readonly<Record<string, string>>
  readonly links?: Readonly<Record<string, string>>
  readonly host?: string
  readonly living?: readonly number[]
}

function system({ files = {}, links = {}, host = 'h', living = [7, 8] }: Faked = {}): HostSystem {
  const all: Readonly<Record<string, string>> = { [BOOT]: 'boot-1\n', '/proc/7/stat': stat(7, '700'), ...files }
  const allLinks: Readonly<Record<string, string>> = { '/proc/self/ns/pid': 'pid:[1]', ...links }
  return {
    pid: 7,
    hostname: () => host,
    readFile: (path) => all[path] || null,
    readLink: (path) => allLinks[path] || null,
    exists: (pid) => living.includes(pid),
  }
}

const other: ProcessRecord = {
  owner: 'o',
  host: 'h',
  pid: 8,
  pidStart: '800',
  bootId: 'boot-1',
  pidNamespace: 'pid:[1]',
  definitions: [],
  queues: [],
  version: null,
  registeredAt: 0,
}

describe('identity', () => {
  test('holds what the system tells', () => {
    expect(processIdentity(system())).toEqual({
      host: 'h',
      pid: 7,
      pidStart: '700',
      bootId: 'boot-1',
      pidNamespace: 'pid:[1]',
    })
  })

  test('finds the start time behind any command name', () => {
    for (const name of ['a b', '(', ')', ') S 1 2', 'x) (y)', '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20']) {
      const files = { '/proc/7/stat': stat(7, '1234', { name }) }
      expect(processIdentity(system({ files })).pidStart, name).toBe('1234')
    }
  })

  test('is null where the text is not what it should be', () => {
    for (const text of ['', '7', '7 (node)', '7 (node) S 1 2', '8 (node) S', stat(7, 'soon'), stat(8, '800')]) {
      expect(processIdentity(system({ files: { '/proc/7/stat': text } })).pidStart, text).toBeNull()
    }
    const elsewhere = { ...system(), readFile: () => null, readLink: () => null }
    expect(processIdentity(elsewhere)).toMatchObject({ pidStart: null, bootId: null, pidNamespace: null })
  })
})

describe('death', () => {
  const living = { '/proc/8/stat': stat(8, '800') }

  test('a process that exists and began when it says lives', () => {
    expect(isDead(other, system({ files: living }))).toBe(false)
  })

  test('one that does not exist is dead', () => {
    expect(isDead(other, system({ living: [7] }))).toBe(true)
  })

  test('one whose pid has another’s start time is dead', () => {
    expect(isDead(other, system({ files: { '/proc/8/stat': stat(8, '801') } }))).toBe(true)
  })

  test('a zombie is dead, but not one that has threads left', () => {
    expect(isDead(other, system({ files: { '/proc/8/stat': stat(8, '800', { state: 'Z', threads: 1 }) } }))).toBe(true)
    expect(isDead(other, system({ files: { '/proc/8/stat': stat(8, '800', { state: 'Z', threads: 3 }) } }))).toBe(false)
  })

  test('one that is hidden from us, or unreadable, is not judged', () => {
    expect(isDead(other, system())).toBe(false)
    expect(isDead(other, system({ files: { '/proc/8/stat': 'nonsense' } }))).toBe(false)
  })

  test('nothing is judged across hosts, boots and namespaces, or where they are unknown', () => {
    const gone = system({ living: [7] })
    expect(isDead({ ...other, host: 'elsewhere' }, gone)).toBe(false)
    expect(isDead({ ...other, bootId: 'boot-0' }, gone)).toBe(false)
    expect(isDead({ ...other, pidNamespace: 'pid:[2]' }, gone)).toBe(false)
    expect(isDead(other, system({ living: [7], links: { '/proc/self/ns/time': 'time:[9]' } }))).toBe(false)
    for (const unknown of [{ bootId: null }, { pidStart: null }, { pidNamespace: null }]) {
      expect(isDead({ ...other, ...unknown }, gone)).toBe(false)
    }
    expect(isDead(other, { ...gone, readFile: () => null })).toBe(false)
    expect(isDead(other, { ...gone, readLink: () => null })).toBe(false)
  })
})

const onLinux = process.platform === 'linux' && readlinkSync('/proc/self/ns/pid') !== ''

describe.runIf(onLinux)('on this host', () => {
  test('this process lives, a child lives until it is killed', async () => {
    const self = { ...other, ...processIdentity() }
    expect(self.pidStart).toMatch(/^\d+$/)
    expect(isDead(self)).toBe(false)

    const script = `import(${JSON.stringify(new URL('../../src/runtime/host.ts', import.meta.url).href)})
      .then(({ processIdentity }) => console.log(JSON.stringify(processIdentity()))); setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--import', 'tsx', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      const line = await new Promise<string>((resolve) => child.stdout.once('data', (data) => resolve(String(data))))
      const record: ProcessRecord = { owner: 'child', registeredAt: 0, ...JSON.parse(line) }
      expect(record.pid).toBe(child.pid)
      expect(isDead(record)).toBe(false)
      child.kill('SIGKILL')
      await until(() => isDead(record))
    } finally {
      child.kill('SIGKILL')
    }
  })
})
