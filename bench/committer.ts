/** What the committer itself costs: closed loops of callers over a store that answers at once. */
import { realRandom } from '../src/core/random.ts'
import { realScheduler } from '../src/core/scheduler.ts'
import { Committer } from '../src/runtime/committer/committer.ts'
import type { Command, Outcome } from '../src/store/contract.ts'

const APPLIED: Outcome = {
  ...{ type: 'applied', status: 'PENDING', ending: null, cancelRequested: false },
  ...{ dueAt: null, rippled: false, refusals: [] },
}
let batches = 0

const committer = new Committer({
  store: {
    name: 'stub',
    commit: async (commands: readonly Command[]) => {
      batches += 1
      return commands.map(() => APPLIED)
    },
    claim: async () => ({ runs: [], nextAt: null }),
    renew: async () => ({ lost: [], cancelRequested: [] }),
    reclaim: async () => ({ runs: [], rippled: false }),
    sweep: async () => ({ removed: 0, nextAt: null }),
    registerQueues: async () => [],
    changeQueue: async () => undefined,
    registerProcess: async () => {},
    removeProcesses: async () => {},
  },
  scheduler: realScheduler,
  random: realRandom,
  onTrouble: () => {},
})

async function measure(callers: number, total: number): Promise<void> {
  batches = 0
  let left = total
  const started = realScheduler.monotonic()
  const caller = async (runId: string): Promise<void> => {
    for (let seq = 0; left-- > 0; seq += 1) {
      const entry = { seq, type: 'outcome', position: seq, verb: 'step', name: 's', failed: false } as const
      const rest = { value: '1', calls: seq, delivered: seq, notes: null, attempts: 1 }
      await committer.submit({ type: 'checkpoint', runId, token: 't', entries: [{ ...entry, ...rest }] })
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, index) => caller(`run-${index}`)))
  const ms = realScheduler.monotonic() - started
  console.log(`${callers} callers: ${((ms * 1000) / total).toFixed(2)} us a command, ${batches} batches`)
}

async function burst(total: number, runs: number): Promise<void> {
  const started = realScheduler.monotonic()
  const all = Array.from({ length: total }, (_, index) =>
    committer.submit({ type: 'cancel', commandId: `${index}`, runId: `run-${index % runs}` }),
  )
  await Promise.all(all)
  const ms = realScheduler.monotonic() - started
  console.log(`${total} at once over ${runs} runs: ${((ms * 1000) / total).toFixed(2)} us a command`)
}

for (const callers of [1, 50, 50, 1_000]) await measure(callers, 500_000)
for (const runs of [1, 100, 100_000]) await burst(100_000, runs)
