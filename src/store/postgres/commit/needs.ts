/** What the commands of a batch name, and what may therefore be touched when they are applied. */
import type { Command, Effect, NewCheckpoint, NewRun, SettleCommand } from '../../commands.ts'

export class Needs {
  /** Runs that a command works on, or looks at to decide: of fences, operators, and suspensions. */
  readonly runs = new Set<string>()
  /** Of those, the ones that may become ENQUEUED: their queue must not change meanwhile. */
  readonly enqueued = new Set<string>()
  readonly requeued = new Set<string>()
  /** Runs that a command may cancel, whatever their row says. */
  readonly cancelled = new Set<string>()
  /** Runs that commands under a fence name. */
  readonly fenced = new Set<string>()
  readonly starts: NewRun[] = []
  /** Queues of `starts`. */
  readonly queues = new Set<string>()
  /** Keys of signals that are sent. */
  readonly signals = new Set<string>()
  /** Keys that runs wait on. */
  readonly waits = new Set<string>()
  /** Keys of the KV space. */
  readonly values = new Set<string>()
  /** Commands that leave a receipt. */
  readonly receipts: string[] = []

  constructor(commands: readonly Command[]) {
    for (const command of commands) this.#add(command)
  }

  #add(command: Command): void {
    switch (command.type) {
      case 'enqueue':
        for (const run of command.runs) this.#addStart(run)
        break
      case 'checkpoint':
        this.#addFenced(command.runId, command.entries)
        break
      case 'settle':
        this.#addFenced(command.runId, command.entries)
        this.#addSettlement(command)
        break
      case 'perform':
        this.#addFenced(command.runId, [command.entry])
        this.#addEffect(command.action)
        break
      case 'wait':
        this.#addFenced(command.runId, command.entries)
        this.waits.add(command.key)
        break
      case 'expire':
        this.#addFenced(command.runId, [])
        break
      case 'cancel':
        this.runs.add(command.runId)
        this.cancelled.add(command.runId)
        break
      case 'requeue':
        this.runs.add(command.runId)
        this.enqueued.add(command.runId)
        this.requeued.add(command.runId)
        break
      case 'signal':
        this.signals.add(command.key)
        this.receipts.push(command.commandId)
        break
      case 'kv':
        this.values.add(command.change.key)
        this.receipts.push(command.commandId)
        break
    }
  }

  #addFenced(runId: string, entries: readonly NewCheckpoint[]): void {
    this.runs.add(runId)
    this.fenced.add(runId)
    for (const { effects } of entries) if (effects !== undefined) for (const effect of effects) this.#addEffect(effect)
  }

  #addSettlement({ runId, settlement }: SettleCommand): void {
    if (settlement.type === 'suspend') for (const child of settlement.children) this.runs.add(child.runId)
    if (settlement.type === 'cancel') this.cancelled.add(runId)
    if (settlement.type === 'release') this.enqueued.add(runId)
  }

  #addEffect(effect: Effect): void {
    switch (effect.type) {
      case 'put':
      case 'delete':
        this.values.add(effect.key)
        break
      case 'signal':
        this.signals.add(effect.key)
        break
      case 'start':
        this.#addStart(effect.run)
        break
    }
  }

  #addStart(run: NewRun): void {
    this.starts.push(run)
    if (run.queue !== null) this.queues.add(run.queue)
    for (const { key } of run.kv) this.values.add(key)
  }
}
