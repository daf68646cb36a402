/** Part 2: many orders at once, and a process that is killed again and again until all have ended. */
import { join } from 'node:path'
import { SERVICES } from './order.ts'
import { OutsideWorld, type ServiceCall } from './outside.ts'
import { type EndedOrder, startWorker } from './process.ts'
import { bar, heading, line, liveLine, paint, verdict } from './screen.ts'

const ORDERS = 200
const EFFECTS = ORDERS * SERVICES.length
const KILLS = 3

interface Outcome {
  readonly log: readonly ServiceCall[]
  readonly orders: readonly EndedOrder[]
  /** Keys of steps that had been called and not recorded when a worker was killed: these, and only these, run again. */
  readonly interrupted: ReadonlySet<string>
  readonly kills: number
}

export async function partTwo(folder: string): Promise<void> {
  heading(`Part 2: ${ORDERS} orders of ${SERVICES.length} steps, and a process that is killed ${KILLS} times`)
  judge(await run(join(folder, 'two.db')))
}

async function run(file: string): Promise<Outcome> {
  const outside = new OutsideWorld({ latencyMs: 12 })
  const { log } = outside
  const url = await outside.open()
  const interrupted = new Set<string>()
  let orders: readonly EndedOrder[] = []
  let kills = 0
  for (let done = false; !done; ) {
    const name = `worker-${kills + 1}`
    const worker = startWorker({
      ...{ name, file, url, orders: ORDERS },
      onReport: (report) => {
        if (report.type === 'found') addInterrupted(interrupted, log, report.recorded)
        if (report.type === 'ended') orders = report.orders
      },
    })
    const killAt = (EFFECTS / (KILLS + 1)) * (kills + 1)
    outside.onCall = () => {
      const effects = effectsOf(log)
      liveLine(`  ${bar(effects, EFFECTS)} ${effects} of ${EFFECTS} effects  ${name}`)
      if (kills < KILLS && effects >= killAt) worker.kill()
    }
    done = (await worker.gone) === 'done'
    if (!done) kills += 1
    const end = done ? paint('cyan', 'done') : paint('red', `kill -9 ${worker.pid}`)
    line(
      `  ${bar(effectsOf(log), EFFECTS)} ${String(effectsOf(log)).padStart(4)} of ${EFFECTS} effects  ${name}  ${end}`,
    )
  }
  outside.close()
  return { log, orders, interrupted, kills }
}

/** Of each order only the step that was called last can be without a record: the next one is called after it. */
function addInterrupted(interrupted: Set<string>, log: readonly ServiceCall[], recorded: readonly string[]): void {
  const known = new Set(recorded)
  const last = new Map(log.map(({ key }) => [key.split(':')[0], key]))
  for (const key of last.values()) if (!known.has(key)) interrupted.add(key)
}

function effectsOf(log: readonly ServiceCall[]): number {
  return log.filter(({ recognised }) => !recognised).length
}

function judge({ log, orders, interrupted, kills }: Outcome): void {
  const effects = new Map(log.filter(({ recognised }) => !recognised).map((call) => [call.key, call]))
  const again = log.filter(({ recognised }) => recognised).map(({ key }) => key)
  const isAsTold = again.every((key) => interrupted.has(key)) && interrupted.size === new Set(again).size
  const paid = orders.filter(({ id, receipt }) => effects.get(`${id}:0`)?.reference === receipt)

  line()
  verdict(kills === KILLS, `${kills} processes were killed; each successor was the same program, started again`)
  verdict(
    orders.length === ORDERS && paid.length === ORDERS,
    `${orders.length} of ${ORDERS} orders ended, ${paid.length} with the receipt of their own charge`,
  )
  verdict(effects.size === EFFECTS, `${effects.size} of ${EFFECTS} effects are in the services' logs: none lost`)
  verdict(effectsOf(log) === EFFECTS, `${log.length} calls had ${effectsOf(log)} effects: none doubled`)
  verdict(
    isAsTold,
    `${again.length} calls came again, all of steps that a kill had interrupted, recognised by their key`,
  )
  line()
  line(
    paint(
      'dim',
      '  Steps run at least once. A step that was under way when its process died runs again, as nobody can',
    ),
  )
  line(
    paint('dim', '  know whether it had its effect; the idempotency key lets the service tell. All others run once.'),
  )
}
