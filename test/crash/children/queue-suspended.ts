/**
 * Runs what `queue-suspensions.ts` has, one engine to a file, each until it passes its point. Says `suspended <number>`
 * when the run of a file has been suspended, and `stopped <number> <point>` when it stands there, or has ended without coming to its point. Told anything, all go on.
 */
import { once } from 'node:events'
import { Journal } from '../journal.ts'
import type { Point } from '../queue-halting.ts'
import { engineOn } from '../queue-suspensions.ts'

const [json = '[]'] = process.argv.slice(2)
const places: readonly { readonly store: string; readonly log: string; readonly haltAt: Point }[] = JSON.parse(json)
const say = (line: string): boolean => process.stdout.write(`${line}\n`)

const told = once(process.stdin, 'data').then(() => {})
await Promise.all(
  places.map(async ({ store, log, haltAt }, number) => {
    const engine = engineOn(store, new Journal(log), (point) => {
      if (point === 'after the suspension') say(`suspended ${number}`)
      if (point !== haltAt && point !== 'after the settlement') return
      say(`stopped ${number} ${point}`)
      return point === haltAt ? told : undefined
    })
    await engine.launch()
  }),
)
