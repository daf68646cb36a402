/** Holds a claim by a lease thread, blocks its event loop for a while, then says whether it still has it. */
import { sqlite } from '../../../../src/store/sqlite/index.ts'
import { newRun } from '../requests.ts'

const [path = '', leaseMs = '', maxBlockedMs = '', blockMs = ''] = process.argv.slice(2)
const store = sqlite(path)
await store.open()
const claim = { token: 't', owner: 'child', leaseMs: Number(leaseMs), version: null }
await store.commit([{ type: 'enqueue', commandId: 'c', runs: [newRun('a', { claim })] }])
const thread = store.leaseThread({
  leaseMs: Number(leaseMs),
  maxBlockedMs: Number(maxBlockedMs),
  onRenewed: () => {},
  onFailed: (error) => {
    throw error
  },
})
thread?.hold([{ runId: 'a', token: 't' }])
await new Promise((resolve) => setTimeout(resolve, Number(leaseMs) / 2))
process.stdout.write('blocked')
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockMs))
const [outcome] = await store.commit([{ type: 'checkpoint', runId: 'a', token: 't', entries: [] }])
process.stdout.write(`claim is ${outcome?.type}`)
