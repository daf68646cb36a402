/** Workers on queues, as processes, and a test's own view of the file that they share. */
import { setTimeout } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { Client, type QueueOptions, StoreUnavailableError } from '../../src/index.ts'
import type { Connection } from '../../src/store/sqlite/driver.ts'
import { loadDriver } from '../../src/store/sqlite/drivers/load.ts'
import { type Place, place } from './place.ts'
import type { Child } from './processes.ts'
import { startShifted } from './queue-children.ts'
import type { Point } from './queue-halting.ts'
import { quiet } from './quiet.ts'
import { storeOf } from './store-spec.ts'

/** Seldom enough to leave the processors to those who work. */
const LOOK_EVERY_MS = 20

export type Queues = Readonly<Record<string, QueueOptions>>

export interface WorkerSettings {
  readonly queues: Queues
  readonly executorId?: string
  readonly version?: string
  /** How many engines the process has; 1 if unset. */
  readonly engines?: number
  /** Of all claims; 30 s if unset. */
  readonly leaseMs?: number
  /** How far its clock is ahead. */
  readonly shiftMs?: number
  /** It never renews a lease, so only its writes tell it of a loss. */
  readonly mute?: boolean
  /** Runs that ask to be held wait until they are released; elsewhere they go on. */
  readonly holds?: boolean
  /** It says `halted` there and writes nothing any more. */
  readonly haltAt?: Point
}

export interface QueuePlace extends Place {
  readonly client: Client
  /** A worker that has loaded, and launches when it is told to. */
  load(settings: WorkerSettings): Child
  /** One that has launched. */
  worker(settings: WorkerSettings): Promise<Child>
  /** Kills a worker where it stands, and notes that before anybody can know that it is dead. */
  kill(worker: Child): Promise<void>
  /** Freezes a worker at a moment when it doesn't hold the write lock: nobody could take over from one that does. */
  freeze(worker: Child): Promise<void>
  /** Notes that a process, which stands still or has outstayed its lease, has lost a run. */
  lost(runId: string, worker: Child): void
  /** Resolves when all runs of these queues have ended. */
  drained(queues: Iterable<string>): Promise<void>
}

/** `spec`: of the store, if it is not to be a file. */
export function queuePlace(spec?: string): QueuePlace {
  const folder = place()
  const here = { ...folder, store: spec ?? folder.store }
  const client = new Client({ store: storeOf(here.store), logger: quiet })
  onTestFinished(() => client.close())
  let connection: Connection | undefined
  const load = (settings: WorkerSettings): Child =>
    startShifted(settings.shiftMs ?? 0, 'worker', here.store, here.log, JSON.stringify(settings))
  return {
    ...here,
    ...{ client, load },
    worker: async (settings) => {
      const child = load(settings)
      child.tell('launch')
      await child.says('launched')
      return child
    },
    kill: async (worker) => {
      await worker.freeze()
      here.journal.note('killed', '', '', worker.pid)
      await worker.kill()
    },
    freeze: async (worker) => {
      await worker.freeze()
      // PostgreSQL ends the transaction of a process that stands still.
      if (spec !== undefined) return
      connection ??= await connectionTo(here.store)
      while (!isWritable(connection)) {
        worker.signal('SIGCONT')
        await setTimeout(Math.random() * 3)
        await worker.freeze()
      }
    },
    lost: (runId, { pid }) => here.journal.note('lost', runId, '', pid),
    drained: async (queues) => {
      for (const name of queues) while (!(await isDrained(client, name))) await setTimeout(LOOK_EVERY_MS)
    },
  }
}

/** By the library that the engine of this process uses: two of them on one file would undo each other's locks. */
async function connectionTo(path: string): Promise<Connection> {
  const driver = await loadDriver(path)
  const connection = driver.connect(path, { readOnly: false })
  onTestFinished(() => connection.close())
  return connection
}

function isWritable(connection: Connection): boolean {
  try {
    connection.exec('begin immediate')
    connection.exec('rollback')
    return true
  } catch {
    return false
  }
}

async function isDrained({ runs }: Client, queue: string): Promise<boolean> {
  try {
    const page = await runs.list({ queue, status: ['ENQUEUED', 'DELAYED', 'PENDING', 'WAITING'], limit: 1 })
    return page.runs.length === 0
  } catch (error) {
    if (error instanceof StoreUnavailableError) return false
    throw error
  }
}
