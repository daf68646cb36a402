/** Processes that stand still beyond their lease: frozen ones, whose claim is lost, and blocked ones, who keep it. */
import { expect, it, onTestFinished } from 'vitest'
import type { Connection } from '../../src/store/sqlite/driver.ts'
import { loadDriver } from '../../src/store/sqlite/drivers/load.ts'
import { type Door, door, until } from '../api/engine/support.ts'
import { outcomes, recoverUntilEnded, type Stage, stage } from './director.ts'
import type { Child } from './processes.ts'
import type { HoldAt } from './scenarios.ts'

const LEASE_MS = 600
const ROUNDS = 10
const PLACES: readonly HoldAt[] = ['in the step', 'before the settlement', 'in a sleep']

/** By the library that the engine of this process uses: two of them on one file would undo each other's locks. */
async function connectionTo(path: string): Promise<Connection> {
  const driver = await loadDriver(path)
  const connection = driver.connect(path, { readOnly: false })
  onTestFinished(() => connection.close())
  return connection
}

/** All that is stored of a run. */
function storedOf(connection: Connection, id: string): unknown {
  const tables = ['checkpoints', 'past_checkpoints', 'attempts', 'endings', 'inputs']
  return [
    connection.prepare('select * from perdure_runs where id = ?').all(id),
    ...tables.map((table) =>
      connection
        .prepare(`select t.* from perdure_${table} t join perdure_runs r on r.seq = t.run where r.id = ?`)
        .all(id),
    ),
  ]
}

function isWritable(connection: Connection): boolean {
  try {
    connection.exec('begin immediate')
    connection.exec('rollback')
    return true
  } catch {
    return false
  }
}

/** Freezes a process at a moment when it doesn't hold the write lock: nobody could take over from one that does. */
async function freeze(child: Child, connection: Connection): Promise<void> {
  await child.freeze()
  while (!isWritable(connection)) {
    child.signal('SIGCONT')
    await new Promise((resolve) => setImmediate(resolve))
    await child.freeze()
  }
}

interface Round {
  readonly id: string
  readonly at: HoldAt
  /** The zombie wakes while the other still has the run in hand, instead of after its end. */
  readonly early: boolean
}

function roundOf(round: number): Round {
  const at = PLACES[round % PLACES.length] ?? 'nowhere'
  return { id: `shift-${round}`, at, early: round % 2 === 0 && at !== 'in a sleep' }
}

/** Who runs each step of a run that is taken over at this place; positions as in `shift`. */
function runners(zombie: number, at: HoldAt): Readonly<Record<number, readonly number[]>> {
  switch (at) {
    case 'in the step':
      return { 0: [zombie], 1: [zombie, process.pid] }
    case 'in a sleep':
      return { 0: [zombie], 2: [process.pid] }
    default:
      return { 0: [zombie], 1: [zombie] }
  }
}

/** The zombie is frozen, its run taken over here; then it goes on. */
async function takeOver(
  here: Stage,
  connection: Connection,
  zombie: Child,
  { id, at, early }: Round,
  doors: ReadonlyMap<string, Door>,
): Promise<void> {
  const { engine, journal } = here
  zombie.tell(`start shift ${id} ${JSON.stringify(at)}`)
  await zombie.says(`holding ${id}`)
  await freeze(zombie, connection)
  if (!early) {
    doors.get(id)?.open()
    await recoverUntilEnded(here, id)
  }
  await until(async () => {
    await engine.recover()
    return journal.of('body', id).length === 2 && (at !== 'in the step' || journal.of('effect', `${id}:1`).length === 2)
  }, 'the takeover')
  const stored = storedOf(connection, id)

  zombie.tell(`release ${id}`)
  zombie.signal('SIGCONT')
  expect(await zombie.says(`warn ${id} claim lost`)).toBeDefined()
  expect(storedOf(connection, id)).toEqual(stored)

  doors.get(id)?.open()
  const recordedBy = [zombie.pid, at === 'before the settlement' ? zombie.pid : process.pid]
  expect(await engine.handle(here.definitions.shift, id).result()).toEqual(recordedBy)
  expect(await outcomes(here, id)).toEqual(['crashed', 'succeeded'])
  for (const [position, pids] of Object.entries(runners(zombie.pid, at))) {
    expect(journal.of('effect', `${id}:${position}`).map(({ pid }) => pid)).toEqual(pids)
  }
}

it.each([
  ['is told by its lease thread', false],
  ['is told by nothing but its writes', true],
])(
  `a process frozen past its lease, that %s, changes nothing, ${ROUNDS} times in a row (D-35, C-06)`,
  async (_, mute) => {
    const doors = new Map(Array.from({ length: ROUNDS }, (_each, round) => [roundOf(round).id, door()]))
    const here = stage(async (runId) => doors.get(runId)?.opened)
    const zombie = await here.worker({ leaseMs: LEASE_MS, mute })
    await here.engine.launch()
    const connection = await connectionTo(here.store)
    for (let round = 0; round < ROUNDS; round += 1) await takeOver(here, connection, zombie, roundOf(round), doors)
    // It is none the worse for it.
    zombie.tell('start shift last "nowhere"')
    await zombie.says('ended last ok')
    expect(zombie.lines.filter((line) => line.startsWith('error'))).toEqual([])
    for (let round = 0; round < ROUNDS; round += 1) {
      const losses = zombie.lines.filter((line) => line.startsWith(`warn shift-${round} claim lost`))
      expect(losses).toHaveLength(1)
    }
  },
)

it('a handler that blocks its process for longer than the lease keeps its claim', async () => {
  const here = stage()
  const leaseMs = 1_500
  const blocked = await here.worker({ leaseMs })
  await here.engine.launch()
  blocked.tell(`start blocking b ${3 * leaseMs}`)
  await until(() => here.journal.of('body', 'b').length > 0)
  await recoverUntilEnded(here, 'b')
  expect(await here.engine.handle('b').result()).toBe(blocked.pid)
  expect(await outcomes(here, 'b')).toEqual(['succeeded'])
  expect(here.journal.of('body', 'b')).toHaveLength(1)
  expect(here.notes.messages('warn')).toEqual([])
})
