/** A worker process of its own, for figures of the way between processes. */
import { fork } from 'node:child_process'
import { once } from 'node:events'

export interface BenchWorker {
  stop(): Promise<void>
}

/** Resolves when the worker is launched on the file. */
export async function startWorker(path: string): Promise<BenchWorker> {
  const child = fork(new URL('children/worker.ts', import.meta.url), [path], { execArgv: ['--import', 'tsx'] })
  await once(child, 'message')
  return {
    stop: async () => {
      child.send('stop')
      await once(child, 'exit')
    },
  }
}
