/** Part 1: an order whose process is killed in the middle of a step, and the process that goes on with it. */
import { join } from 'node:path'
import { SERVICES } from './order.ts'
import { OutsideWorld, type ServiceCall } from './outside.ts'
import { type EndedOrder, type Report, startWorker, type WorkerProcess } from './process.ts'
import { heading, line, paint, verdict } from './screen.ts'

const ID = 'order-1'
const [, KILLED_IN] = SERVICES

/** A line of the timeline: when, which worker in which attempt, which step, what happened. */
type Tell = (attempt: number, step: string, happened: string, note?: string) => void

export async function partOne(folder: string): Promise<void> {
  heading('Part 1: an order, and a process that dies in the middle of it')
  const outside = new OutsideWorld({ latencyMs: 4 })
  const url = await outside.open()
  const began = performance.now()
  const tell: Tell = (attempt, step, happened, note = '') => {
    const when = `${Math.round(performance.now() - began)} ms`.padStart(8)
    const who = attempt === 0 ? '' : `worker-${attempt}  attempt ${attempt}`
    line(`${paint('dim', when)}  ${who.padEnd(19)}  ${step.padEnd(13)}  ${happened}  ${paint('dim', note)}`.trimEnd())
  }
  let recorded: readonly string[] = []
  let ended: EndedOrder | undefined
  const start = (attempt: number): WorkerProcess => {
    const onReport = (report: Report): void => {
      if (report.type === 'found') recorded = report.recorded
      if (report.type === 'ended') [ended] = report.orders
      if (report.type !== 'launched') return
      tell(0, '', paint('cyan', `worker-${attempt} launched`), `process ${worker.pid}`)
      tellReplayed(recorded, attempt, tell)
    }
    const worker = startWorker({ name: `worker-${attempt}`, file: join(folder, 'one.db'), url, orders: 1, onReport })
    return worker
  }

  const first = start(1)
  outside.onCall = (call) => {
    tell(1, call.service, paint('green', 'ran      '), `done: ${call.reference}`)
    if (call.service !== KILLED_IN) return
    first.kill()
    tell(
      0,
      '',
      paint('red', `kill -9 ${first.pid}`),
      `'${call.service}' has had its effect, its outcome is not recorded`,
    )
  }
  await first.gone

  const second = start(2)
  outside.onCall = (call) => tellCall(call, tell)
  await second.gone
  tell(0, '', paint('cyan', `${ID} ended`), ended === undefined ? 'without a result' : 'SUCCESS')
  outside.close()
  judge(outside.log, ended)
}

/** What the second process finds recorded it doesn't run: its replay is served from the records. */
function tellReplayed(recorded: readonly string[], attempt: number, tell: Tell): void {
  for (const key of recorded) {
    const service = SERVICES[Number(key.split(':')[1])] ?? ''
    tell(attempt, service, paint('blue', 'replayed '), 'from its record, not run again')
  }
}

function tellCall({ service, recognised, reference }: ServiceCall, tell: Tell): void {
  if (recognised) tell(2, service, paint('yellow', 'ran again'), `same idempotency key, recognised: ${reference}`)
  else tell(2, service, paint('green', 'ran      '), `done: ${reference}`)
}

function judge(log: readonly ServiceCall[], ended: EndedOrder | undefined): void {
  const of = (service: string): readonly ServiceCall[] => log.filter((call) => call.service === service)
  const effects = (service: string): number => of(service).filter(({ recognised }) => !recognised).length
  const attempts = (ended?.attempts ?? []).map(({ attempt, outcome, worker }) => `${attempt} ${outcome} (${worker})`)
  const charges = of('charge card')

  line()
  verdict(
    attempts.join(', ') === '1 crashed (worker-1), 2 succeeded (worker-2)',
    `the store knows both attempts: ${attempts.join(', ')}`,
  )
  verdict(
    charges.length === 1 && ended?.receipt === charges[0]?.reference,
    `the card was charged once: the provider's own log has ${charges.length} call, and its receipt is the result's`,
  )
  verdict(
    of(KILLED_IN ?? '').length === 2 && effects(KILLED_IN ?? '') === 1,
    `the killed step was called ${of(KILLED_IN ?? '').length} times under one key and had ${effects(KILLED_IN ?? '')} effect`,
  )
  verdict(
    effects('ship') === 1 && effects('send mail') === 1 && log.length === SERVICES.length + 1,
    'what came after it ran once',
  )
}
