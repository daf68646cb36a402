/** Worker processes as the demo sees them: started, listened to, killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What a worker of orders tells of itself. */
export type Report =
  /** Idempotency keys of the steps that were recorded when it came. */
  | { readonly type: 'found'; readonly recorded: readonly string[] }
  | { readonly type: 'launched' }
  | { readonly type: 'ended'; readonly orders: readonly EndedOrder[] }

export interface EndedOrder {
  readonly id: string
  readonly receipt: string
  readonly attempts: readonly { readonly attempt: number; readonly outcome: string; readonly worker: string }[]
}

export interface WorkerOptions {
  readonly name: string
  readonly file: string
  readonly url: string
  readonly orders: number
  readonly onReport: (report: Report) => void
}

export interface WorkerProcess {
  readonly name: string
  readonly pid: number | undefined
  /** SIGKILL: the process gets no chance to do anything about it. */
  kill(): void
  /** SIGTERM: the process ends when it has done, or handed back, what it has in hand. */
  stop(): void
  /** Resolves when the process is gone. Rejects if it failed by itself. */
  readonly gone: Promise<'done' | 'killed'>
}

const ROOT = join(import.meta.dirname, '../..')
const living = new Set<ChildProcess>()

process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

/** A process that works on orders. */
export function startWorker({ name, file, url, orders, onReport }: WorkerOptions): WorkerProcess {
  const program = new URL('./worker.ts', import.meta.url)
  return startProcess(name, program, [file, url, name, String(orders)], (message) => onReport(message as Report))
}

export function startProcess(
  name: string,
  program: URL,
  args: readonly string[],
  onMessage: (message: unknown) => void,
): WorkerProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', fileURLToPath(program), ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  living.add(child)
  child.on('message', onMessage)
  const gone = new Promise<'done' | 'killed'>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      living.delete(child)
      if (signal === 'SIGKILL') resolve('killed')
      else if (code === 0) resolve('done')
      else reject(new Error(`${name} ended with ${code === null ? signal : `exit code ${code}`}`))
    })
  })
  return { name, pid: child.pid, gone, kill: () => void child.kill('SIGKILL'), stop: () => void child.kill('SIGTERM') }
}
