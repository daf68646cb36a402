/**
 * `npm run demo`: durable work that survives `kill -9`, and queues that keep their limits, in three parts. Needs no
 * service; works in a temporary folder, which it removes. Exits with 1 if anything was lost or doubled, or a limit
 * exceeded.
 *
 * Read order.ts first (the workflow), then worker.ts (the process that is killed), then media.ts (the queues).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { partOne } from './part-one.ts'
import { partThree } from './part-three.ts'
import { partTwo } from './part-two.ts'
import { failed, line, paint } from './screen.ts'

/** Where a death is only noticed by the end of a lease, each of four takeovers may take half a minute. */
const GIVE_UP_AFTER_MS = process.platform === 'linux' ? 60_000 : 240_000

const began = performance.now()
const folder = mkdtempSync(join(tmpdir(), 'perdure-demo-'))
process.once('SIGINT', () => process.exit(130))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
// A run that was lost never ends.
setTimeout(() => {
  line(paint('red', `Not done after ${GIVE_UP_AFTER_MS / 1_000} s: something was lost, or the machine is very busy.`))
  process.exit(1)
}, GIVE_UP_AFTER_MS).unref()

if (process.platform !== 'linux') {
  line('Only Linux tells at once that a process is dead. Here each takeover waits for a lease to end: up to 30 s.')
}
await partOne(folder)
await partTwo(folder)
await partThree(folder)

const seconds = ((performance.now() - began) / 1_000).toFixed(1)
line()
line(
  failed()
    ? paint('red', 'Something was lost or doubled, or a limit exceeded.')
    : paint('green', `Nothing lost, nothing doubled, no limit exceeded, in ${seconds} s.`),
)
process.exitCode = failed() ? 1 : 0
