/**
 * A store between an engine and the real one that counts the calls, and makes trouble when a test says so: it is
 * unavailable, loses answers, or is cut off for good, as if the process of its engine had died.
 */
import type { Clock } from '../../../src/core/clock.ts'
import { StoreClosedError, StoreUnavailableError } from '../../../src/core/errors.ts'
import type { Emitter } from '../../../src/core/events.ts'
import type { Command, LeaseThread, LeaseThreadOptions, Store, StoreCapabilities } from '../../../src/store/contract.ts'

type Answering = Exclude<keyof Store, 'name' | 'capabilities' | 'clock' | 'setClock' | 'watch' | 'leaseThread'>

/** What others on the same data are told of, as they are by a store that is shared. */
const WRITES: ReadonlySet<Answering> = new Set(['commit', 'reclaim', 'sweep', 'registerQueues', 'changeQueue'])

/** `lost`: the call takes effect, and its answer is lost. */
export type Fate = 'answered' | 'unavailable' | 'lost' | 'refused'

export class TroubleStore implements Store {
  readonly commands: Command[] = []
  readonly #inner: Store
  readonly #changes: Emitter<TroubleStore> | undefined
  readonly #counts = new Map<Answering, number>()
  /** What becomes of a call. */
  fate: (method: Answering, commands: readonly Command[]) => Fate | Promise<Fate> = () => 'answered'
  #dead = false

  /** `changes`: tells the other connections of a store that can't watch by itself. */
  constructor(inner: Store, changes?: Emitter<TroubleStore>) {
    this.#inner = inner
    this.#changes = changes
  }

  get name(): string {
    return this.#inner.name
  }

  get capabilities(): StoreCapabilities {
    return this.#inner.capabilities
  }

  get clock(): Clock {
    return this.#inner.clock
  }

  /** Calls of a method so far. */
  calls(method: Answering): number {
    return this.#counts.get(method) ?? 0
  }

  /** The process that uses this store has died, as far as anybody can tell who looks at the data. */
  die(): void {
    this.#dead = true
  }

  setClock(clock: Clock): void {
    this.#inner.setClock(clock)
  }

  open: Store['open'] = () => this.#call('open', () => this.#inner.open())
  close: Store['close'] = () => this.#inner.close()
  migrate: Store['migrate'] = () => this.#inner.migrate()
  claim: Store['claim'] = (request) => this.#call('claim', () => this.#inner.claim(request))
  renew: Store['renew'] = (claims, leaseMs) => this.#call('renew', () => this.#inner.renew(claims, leaseMs))
  reclaim: Store['reclaim'] = (request) => this.#call('reclaim', () => this.#inner.reclaim(request))
  sweep: Store['sweep'] = (request) => this.#call('sweep', () => this.#inner.sweep(request))
  registerQueues: Store['registerQueues'] = (queues) =>
    this.#call('registerQueues', () => this.#inner.registerQueues(queues))
  changeQueue: Store['changeQueue'] = (name, change) =>
    this.#call('changeQueue', () => this.#inner.changeQueue(name, change))
  processes: Store['processes'] = () => this.#call('processes', () => this.#inner.processes())
  runs: Store['runs'] = (ids) => this.#call('runs', () => this.#inner.runs(ids))
  inputs: Store['inputs'] = (ids) => this.#call('inputs', () => this.#inner.inputs(ids))
  endings: Store['endings'] = (ids) => this.#call('endings', () => this.#inner.endings(ids))
  list: Store['list'] = (request) => this.#call('list', () => this.#inner.list(request))
  histories: Store['histories'] = (ids) => this.#call('histories', () => this.#inner.histories(ids))
  attempts: Store['attempts'] = (id) => this.#call('attempts', () => this.#inner.attempts(id))
  signals: Store['signals'] = (waits) => this.#call('signals', () => this.#inner.signals(waits))
  queues: Store['queues'] = () => this.#call('queues', () => this.#inner.queues())
  queueStats: Store['queueStats'] = (name) => this.#call('queueStats', () => this.#inner.queueStats(name))
  situation: Store['situation'] = (id) => this.#call('situation', () => this.#inner.situation(id))
  values: Store['values'] = (keys) => this.#call('values', () => this.#inner.values(keys))
  scan: Store['scan'] = (prefix, after, limit) => this.#call('scan', () => this.#inner.scan(prefix, after, limit))
  nextExpiry: Store['nextExpiry'] = () => this.#call('nextExpiry', () => this.#inner.nextExpiry())
  cancelRequests: Store['cancelRequests'] = (owner) =>
    this.#call('cancelRequests', () => this.#inner.cancelRequests(owner))
  registerProcess: Store['registerProcess'] = (process) =>
    this.#call('registerProcess', () => this.#inner.registerProcess(process))
  removeProcesses: Store['removeProcesses'] = (owners) =>
    this.#call('removeProcesses', () => this.#inner.removeProcesses(owners))

  commit: Store['commit'] = (commands) => {
    this.commands.push(...commands)
    return this.#call('commit', () => this.#inner.commit(commands), commands)
  }

  watch(onChange: () => void): () => void {
    if (this.#changes === undefined) return this.#inner.watch(onChange)
    return this.#changes.on((writer) => {
      if (writer !== this) onChange()
    })
  }

  leaseThread(options: LeaseThreadOptions): LeaseThread | null {
    return this.#inner.leaseThread(options)
  }

  async #call<T>(method: Answering, call: () => Promise<T>, commands: readonly Command[] = []): Promise<T> {
    this.#counts.set(method, this.calls(method) + 1)
    this.#checkAlive()
    const fate = await this.fate(method, commands)
    if (fate === 'refused') throw new Error('the database refuses this')
    if (fate === 'unavailable') throw new StoreUnavailableError({ store: this.name, problem: 'gone for a while' })
    const answer = await call()
    if (WRITES.has(method)) this.#changes?.emit(this)
    this.#checkAlive()
    if (fate === 'lost') throw new StoreUnavailableError({ store: this.name, problem: 'the connection was lost' })
    return answer
  }

  #checkAlive(): void {
    if (this.#dead) throw new StoreClosedError({ store: this.name })
  }
}
