/**
 * Runs what `queue-suspensions.ts` has, one engine to a file, each until it passes its point. Says `suspended <number>`
 * when the run of a file has been suspended, and `stopped <number> <point>` when it stands there, or has ended without coming to its point. Told anything, all go on.
 */
import { once } from 'node:events'
import { Journal } from '../journal.ts'
import type { Passing } from '../queue-halting.ts'
import { engineOn, type SuspensionScene } from '../queue-suspensions.ts'

const [json = '[]'] = process.argv.slice(2)
const scenes: readonly SuspensionScene[] = JSON.parse(json)
const say = (line: string): boolean => process.stdout.write(`${line}\n`)

const told = once(process.stdin, 'data').then(() => {})
await Promise.all(
  scenes.map(async ({ store, log, haltAt, serves }, number) => {
    const passing: Passing = (point) => {
      if (point === 'after the suspension') say(`suspended ${number}`)
      if (point !== haltAt && point !== 'after the settlement') return
      say(`stopped ${number} ${point}`)
      return point === haltAt ? told : undefined
    }
    const engine = engineOn(store, new Journal(log), { passing, ...(serves === undefined ? {} : { serves }) })
    await engine.launch()
  }),
)
