/** The options of an Engine, checked. */
import { hostname } from 'node:os'
import type { Clock } from '../core/clock.ts'
import type { Codec, ErrorClass } from '../core/codec.ts'
import { type Duration, toMs } from '../core/duration.ts'
import { ConfigurationError, DuplicateDefinitionError, UnknownQueueError } from '../core/errors.ts'
import { checkName } from '../core/names.ts'
import { checkClock, checkOptions, integerOption } from '../core/options.ts'
import type { Logger } from '../observe/log.ts'
import type { Store } from '../store/contract.ts'
import { type AnyDefinition, type Behaviour, behaviourOf, type StateOf } from './definition.ts'
import { checkQueues, type EngineQueues } from './engine-queues.ts'
import type { Queue } from './queue.ts'
import { checkStore, codecWith, loggerOf } from './surroundings.ts'

export type EngineOptions<Ds extends readonly AnyDefinition[]> = BaseOptions<Ds> & StateOption<Ds>

/** Required as soon as a definition was made by `define<State>()`. */
type StateOption<Ds extends readonly AnyDefinition[]> =
  unknown extends StateOf<Ds>
    ? { readonly state?: unknown }
    : {
        /** What the definitions find in `ctx.state`: clients, configuration. Never persisted. */
        readonly state: StateOf<Ds>
      }

interface BaseOptions<Ds extends readonly AnyDefinition[]> {
  /** Where runs live: `sqlite('app.db')`, or `memory()` in tests. Several engines and clients may share one. */
  readonly store: Store
  /** What this engine can run. Names are unique. */
  readonly definitions: Ds
  /** The queues that its runs may be started on, made by `queue`. Names are unique. Default: none. */
  readonly queues?: readonly Queue[]
  /**
   * Names of those of `queues` that this engine takes runs from; on the others it only starts them. Runs without a queue
   * are taken by every engine with their definition. Default: all.
   */
  readonly listenQueues?: readonly string[]
  /**
   * The version of the code, where runs must end under the code that began them: a run belongs to the version of the
   * first engine that claims it, and engines with another pass it over. Engines without a version take any run, and bind
   * none. Default: no version; replay itself finds out what doesn't fit.
   */
  readonly version?: string
  /** Error classes that come back as themselves from the store: from steps, and as the `cause` of a failed run. */
  readonly errors?: readonly ErrorClass[]
  /** What operators call this executor; each engine adds an incarnation of its own. Default: the host's name. */
  readonly executorId?: string
  /** Sets the clock of a store that nobody has opened yet. Default: the store's own. */
  readonly clock?: Clock
  /**
   * Where warnings and errors go, and what `ctx.log` writes to; what it throws is ignored. Default: warnings and errors
   * to the console.
   */
  readonly logger?: Logger
  /** How many runs this engine has in hand at most; more wait in the store. Sleeping runs don't count. Default 1,000. */
  readonly maxConcurrent?: number
  /** A handler that blocks the event loop for longer loses its claims. Default 5 min. Durable stores only. */
  readonly maxBlocked?: Duration
}

type GivenOptions = BaseOptions<readonly AnyDefinition[]> & { readonly state?: unknown }

export interface CheckedEngine {
  readonly store: Store
  readonly behaviours: ReadonlyMap<string, { readonly definition: AnyDefinition; readonly behaviour: Behaviour }>
  readonly queues: EngineQueues
  readonly version: string | null
  readonly state: unknown
  readonly codec: Codec
  readonly executorId: string
  readonly logger: Logger
  readonly maxConcurrent: number
  readonly maxBlockedMs: number
}

const OPTIONS = [
  'store',
  'definitions',
  'queues',
  'listenQueues',
  'version',
  'state',
  'errors',
  'executorId',
  'clock',
  'logger',
  'maxConcurrent',
  'maxBlocked',
]

/**
 * @throws ConfigurationError, InvalidDurationError, InvalidIdError, DuplicateDefinitionError, DuplicateQueueError,
 *   UnknownQueueError
 */
export function checkEngine(options: GivenOptions): CheckedEngine {
  checkOptions('Engine', options, OPTIONS)
  const { store, definitions, state, executorId, version, clock } = options
  checkStore('Engine', store)
  const queues = checkQueues(options.queues, options.listenQueues)
  const behaviours = checkDefinitions(definitions, queues)
  const codec = codecWith('Engine', options.errors)
  const logger = loggerOf('Engine', options.logger)
  if (executorId !== undefined) checkName('executorId', executorId)
  if (version !== undefined) checkName('version', version)
  const { maxConcurrent = 1_000, maxBlocked = '5m' } = options
  integerOption('Engine.maxConcurrent', maxConcurrent, 1)
  const maxBlockedMs = toMs(maxBlocked, 'Engine.maxBlocked')
  if (clock !== undefined) {
    checkClock('Engine.clock', clock)
    store.setClock(clock)
  }
  return {
    ...{ store, behaviours, queues, state, codec, logger, maxConcurrent, maxBlockedMs },
    version: version ?? null,
    executorId: executorId ?? hostname(),
  }
}

function checkDefinitions(definitions: unknown, queues: EngineQueues): CheckedEngine['behaviours'] {
  if (!Array.isArray(definitions)) {
    throw new ConfigurationError({
      option: 'Engine.definitions',
      problem: 'is not an array',
      allowed: 'an array of workflows',
    })
  }
  const behaviours = new Map<string, { definition: AnyDefinition; behaviour: Behaviour }>()
  for (const definition of definitions) {
    const behaviour = behaviourOf(definition)
    if (behaviour === undefined) {
      const problem = 'has an entry that is no definition'
      throw new ConfigurationError({ option: 'Engine.definitions', problem, allowed: 'what workflow(...) gives' })
    }
    if (behaviours.has(definition.name)) throw new DuplicateDefinitionError({ name: definition.name })
    const { queue } = behaviour
    if (queue !== null && !queues.has(queue)) throw new UnknownQueueError({ queue, known: [...queues.keys()] })
    behaviours.set(definition.name, { definition, behaviour })
  }
  return behaviours
}
