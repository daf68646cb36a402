/** A process is killed at each boundary of a workflow of three steps, and another goes on from there. */
import { expect, it } from 'vitest'
import { Engine } from '../../src/index.ts'
import { ended, notebook } from '../api/engine/support.ts'
import { orderWorkflow, passingStore, RUN_ID, STEPS } from './order.ts'
import { place } from './place.ts'
import { start } from './processes.ts'

interface Boundary {
  readonly point: string
  /** The step whose effect happens twice, as nobody can know that it has happened. */
  readonly twice?: string
  /** How often the body is entered, by both processes together; 2 if unset. */
  readonly bodies?: number
}

const boundaries: readonly Boundary[] = [
  { point: 'before the acceptance', bodies: 1 },
  { point: 'after the acceptance', bodies: 1 },
  { point: 'before the first step' },
  ...STEPS.flatMap((step) => [
    { point: `before the effect of ${step}` },
    { point: `after the effect of ${step}`, twice: step },
    { point: `before the checkpoint of ${step}`, twice: step },
    { point: `after the checkpoint of ${step}` },
  ]),
  { point: 'before the settlement' },
  { point: 'after the settlement', bodies: 1 },
]

const cases = boundaries.map((boundary): [string, Boundary] => [
  `${boundary.point}: ${boundary.twice === undefined ? 'each effect once' : `once, but that of ${boundary.twice} twice`}`,
  boundary,
])

it.each(cases)('killed %s (W4, D-14, D-16)', async (_, boundary) => {
  const { store, log, journal } = place()
  const { point, twice, bodies = 2 } = boundary
  const accepted = point !== 'before the acceptance'
  expect(await start('order.ts', store, log, point).ended).toMatchObject({ signal: 'SIGKILL' })

  const order = orderWorkflow(journal, () => {})
  const options = { store: passingStore(store, () => {}), definitions: [order], logger: notebook() }
  const engine = ended(new Engine(options))
  await engine.launch()
  const run = await engine.start(order, 7, { id: RUN_ID })
  expect(run.newlySubmitted).toBe(!accepted)
  expect(await run.result()).toEqual(STEPS.map((step) => `${step} 7`))

  const effects = STEPS.map((step) => journal.of('effect', step).length)
  expect(effects).toEqual(STEPS.map((step) => (step === twice ? 2 : 1)))
  for (const [position, step] of STEPS.entries()) {
    for (const { value } of journal.of('effect', step)) expect(value).toBe(`${RUN_ID}:${position}`)
  }
  expect(journal.of('body')).toHaveLength(bodies)
  const outcomes = (await engine.runs.attempts(RUN_ID)).map(({ outcome }) => outcome)
  const crashed = accepted && point !== 'after the settlement'
  expect(outcomes).toEqual(crashed ? ['crashed', 'succeeded'] : ['succeeded'])
  expect((await engine.runs.steps(RUN_ID)).map(({ name }) => name)).toEqual(STEPS)
})
