/** Starts a producer, then two workers, over one file; stops the workers when the producer has all its results. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

const PRODUCER = new URL('./producer.ts', import.meta.url)
const WORKER = new URL('./worker.ts', import.meta.url)

async function failed(child: ChildProcess): Promise<boolean> {
  const [code, signal] = await once(child, 'exit')
  // One that was told to stop before it had come to listen is stopped, too.
  return code !== 0 && signal !== 'SIGTERM'
}

const producer = fork(PRODUCER)
const workers = [fork(WORKER), fork(WORKER)]
const ends = workers.map(failed)
const failures = [await failed(producer)]
for (const worker of workers) worker.kill('SIGTERM')
failures.push(...(await Promise.all(ends)))
console.log('the workers have stopped')
if (failures.includes(true)) process.exitCode = 1
