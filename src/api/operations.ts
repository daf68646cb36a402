/** What engines and clients have in common: everything that needs a store and no handlers. */
import type { Codec } from '../core/codec.ts'
import { QueueDeduplicatedError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { checkName, checkRunId } from '../core/names.ts'
import type { AcceptedRun, SignalOutcome } from '../store/contract.ts'
import type { StartSql, StartSqlItem } from './caller-starts.ts'
import type { Connection } from './connection.ts'
import type { AnyDefinition } from './definition.ts'
import { type Handle, type HandleHost, RunHandle } from './handle.ts'
import { type Kv, kvOf } from './kv.ts'
import { type Queues, queuesOf } from './queues.ts'
import { type Runs, runsOf } from './runs.ts'
import type { StartPlanner } from './start-planner.ts'
import { type StartItem, Starts, type StartsOptions } from './starts.ts'

export interface OperationsOptions {
  readonly connection: Connection
  readonly codec: Codec
  readonly ids: Ids
  readonly planner: StartPlanner
  readonly worker: StartsOptions['worker']
}

export class Operations {
  readonly runs: Runs
  readonly kv: Kv
  readonly queues: Queues
  readonly #connection: Connection
  readonly #codec: Codec
  readonly #ids: Ids
  readonly #starts: Starts
  readonly #host: HandleHost

  constructor({ connection, codec, ids, planner, worker }: OperationsOptions) {
    const hub: HandleHost['hub'] = () => connection.open()
    this.#connection = connection
    this.#codec = codec
    this.#ids = ids
    this.#host = { codec, hub, cancel: (id) => this.cancel(id) }
    this.#starts = new Starts({ hub, planner, ids, worker })
    this.runs = runsOf(hub, codec)
    this.kv = kvOf({ hub, codec, ids })
    this.queues = queuesOf(hub)
  }

  /** Refused once its engine or client has been told to end. */
  async start(target: AnyDefinition | string, item: StartItem): Promise<Handle<unknown>> {
    this.#connection.assertOpen()
    return this.#handleOf(await this.#starts.start(target, item))
  }

  async startMany(target: AnyDefinition | string, items: readonly StartItem[]): Promise<Handle<unknown>[]> {
    this.#connection.assertOpen()
    const accepted = await this.#starts.startMany(target, items)
    return accepted.map((run) => this.#handleOf(run))
  }

  async startSql(target: AnyDefinition | string, item: StartSqlItem): Promise<StartSql> {
    this.#connection.assertOpen()
    return await this.#starts.startSql(target, item)
  }

  handle(target: AnyDefinition | string, id?: string): Handle<unknown> {
    const runId = id === undefined && typeof target === 'string' ? target : id
    checkRunId(runId)
    return new RunHandle(this.#host, runId, false)
  }

  async cancel(id: string): Promise<boolean> {
    checkRunId(id)
    const hub = await this.#connection.open()
    const outcome = await hub.submit({ type: 'cancel', commandId: this.#ids.next(), runId: id })
    return outcome.type !== 'notCancelled'
  }

  async requeue(id: string): Promise<boolean> {
    checkRunId(id)
    const hub = await this.#connection.open()
    const outcome = await hub.submit({ type: 'requeue', commandId: this.#ids.next(), runId: id })
    if (outcome.type === 'requeued') return true
    if (outcome.holder !== null) throw new QueueDeduplicatedError({ runId: id, ...outcome.holder })
    return false
  }

  async sendSignal(key: string, payload: unknown): Promise<SignalOutcome['type']> {
    checkName('signal key', key)
    const text = this.#codec.encode(payload)
    const hub = await this.#connection.open()
    const outcome = await hub.submit({ type: 'signal', commandId: this.#ids.next(), key, payload: text })
    return outcome.type
  }

  #handleOf({ id, created }: AcceptedRun): Handle<unknown> {
    return new RunHandle(this.#host, id, created)
  }
}
