/** Tells of starts that will not do what their caller may think, so that none is kept from running in silence. */
import type { EngineEvent } from '../core/engine-events.ts'
import type { Command, NewCheckpoint, NewRun, Outcome, StartCaveat } from '../store/contract.ts'
import type { QueueView } from './queue-view.ts'

export class Caveats {
  readonly #view: QueueView
  readonly #tell: (event: EngineEvent) => void
  /** What is ignored on which queues: once is enough. */
  readonly #toldOf = new Set<string>()

  constructor(view: QueueView, tell: (event: EngineEvent) => void) {
    this.#view = view
    this.#tell = tell
  }

  /** To be called with every command that was committed. */
  look(command: Command, outcome: Outcome): void {
    if (command.type === 'enqueue' && outcome.type === 'accepted') {
      outcome.runs.forEach(({ created, caveat }, index) => {
        const run = command.runs[index]
        if (created && caveat !== null && run !== undefined) this.#say(run, caveat)
      })
    } else if (command.type === 'perform' && outcome.type === 'performed') {
      if (command.action.type === 'start') this.#lookAt(command.action.run)
    } else if (outcome.type === 'applied' && outcome.rippled && 'entries' in command) {
      const refused = new Set(outcome.refusals.map(({ id }) => id))
      for (const run of followUps(command.entries)) if (!refused.has(run.id)) this.#lookAt(run)
    }
  }

  /** Of starts whose answer has no caveat: by what is known here of the queue. */
  #lookAt(run: NewRun): void {
    const caveat = this.#view.caveatOf(run)
    if (caveat !== null) this.#say(run, caveat)
  }

  #say({ id: runId, queue }: NewRun, caveat: StartCaveat): void {
    if (caveat === 'keyless') {
      this.#tell({ type: 'start.keyless', runId, queue })
      return
    }
    const told = `${caveat} ${queue ?? ''}`
    if (this.#toldOf.has(told)) return
    this.#toldOf.add(told)
    this.#tell({ type: `start.${caveat}`, queue })
  }
}

function followUps(entries: readonly NewCheckpoint[]): readonly NewRun[] {
  return entries.flatMap(({ effects = [] }) => effects.flatMap((effect) => (effect.type === 'start' ? effect.run : [])))
}
