/** A store whose every write is a place to stop at: before it is asked for, and when it has been acknowledged. */
import type { Command, Store } from '../../src/store/contract.ts'

/** `before the wait`, `after the claim`; from the second of a kind on `after the claim #2`. */
export type Point = string

/** Told of every point; the store goes on when what it gives has resolved. */
export type Passing = (point: Point) => Promise<void> | void

/** `runId`: only what is written for this run counts. */
export function passingPoints<S extends Store>(store: S, passing: Passing, runId?: string): S {
  const seen = new Map<string, number>()
  const pass = async (side: string, writes: readonly string[]): Promise<void> => {
    for (const write of writes) {
      const point = `${side} ${write}`
      const count = (seen.get(point) ?? 0) + 1
      seen.set(point, count)
      await passing(count === 1 ? point : `${point} #${count}`)
    }
  }
  const concerns = (id: string | undefined): boolean => runId === undefined || id === runId
  const commit = store.commit.bind(store)
  store.commit = async (commands) => {
    const writesOf = (some: readonly Command[]): readonly string[] =>
      some.filter((command) => concerns(runIdOf(command))).map(nameOf)
    await pass('before', writesOf(commands))
    const outcomes = await commit(commands)
    await pass('after', writesOf(commands.slice(0, outcomes.length)))
    return outcomes
  }
  const claim = store.claim.bind(store)
  store.claim = async (request) => {
    const outcome = await claim(request)
    await pass(
      'after',
      outcome.runs.filter(({ run }) => concerns(run.id)).map(() => 'the claim'),
    )
    return outcome
  }
  return store
}

function runIdOf(command: Command): string | undefined {
  if (command.type === 'enqueue') return command.runs[0]?.id
  return 'runId' in command ? command.runId : undefined
}

function nameOf(command: Command): string {
  switch (command.type) {
    case 'enqueue':
      return 'the acceptance'
    case 'settle':
      return command.settlement.type === 'suspend' ? 'the suspension' : 'the settlement'
    case 'checkpoint':
      return `the record of ${command.entries.map(({ verb, name }) => name || verb).join(' and ')}`
    case 'perform':
      return command.action.type === 'start' ? 'the start of a child' : 'the signal'
    default:
      return `the ${command.type}`
  }
}
