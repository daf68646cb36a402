/** The options of an Engine, checked. */
import { hostname } from 'node:os'
import type { Clock } from '../core/clock.ts'
import { type Codec, createCodec, type ErrorClass } from '../core/codec.ts'
import { type Duration, toMs } from '../core/duration.ts'
import { ConfigurationError, DuplicateDefinitionError } from '../core/errors.ts'
import { checkClock, checkFunction, checkOptions, integerOption } from '../core/options.ts'
import { harmless, LOG_LEVELS, type Logger, quietConsole } from '../observe/log.ts'
import type { Store } from '../store/contract.ts'
import { type AnyDefinition, type Behaviour, behaviourOf, type StateOf } from './definition.ts'
import { checkName } from './names.ts'

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
  'state',
  'errors',
  'executorId',
  'clock',
  'logger',
  'maxConcurrent',
  'maxBlocked',
]

/** @throws ConfigurationError, InvalidDurationError, DuplicateDefinitionError */
export function checkEngine(options: GivenOptions): CheckedEngine {
  checkOptions('Engine', options, OPTIONS)
  const { store, definitions, state, errors, executorId, clock, logger = quietConsole } = options
  checkStore(store)
  const behaviours = checkDefinitions(definitions)
  checkErrors(errors)
  const codec = createCodec(errors === undefined ? {} : { errors })
  if (executorId !== undefined) checkName('executorId', executorId)
  checkLogger(logger)
  const { maxConcurrent = 1_000, maxBlocked = '5m' } = options
  integerOption('Engine.maxConcurrent', maxConcurrent, 1)
  const maxBlockedMs = toMs(maxBlocked, 'Engine.maxBlocked')
  if (clock !== undefined) {
    checkClock('Engine.clock', clock)
    store.setClock(clock)
  }
  return {
    ...{ store, behaviours, state, codec, maxConcurrent, maxBlockedMs },
    logger: harmless(logger),
    executorId: executorId ?? hostname(),
  }
}

function checkStore(store: unknown): void {
  if (typeof store === 'object' && store !== null && 'commit' in store && 'claim' in store) return
  const allowed = "sqlite('app.db') from 'perdure/sqlite', or memory() from 'perdure/memory'"
  throw new ConfigurationError({ option: 'Engine.store', problem: 'is not a store', allowed })
}

function checkLogger(logger: unknown): asserts logger is Logger {
  for (const level of LOG_LEVELS) {
    const method: unknown = typeof logger === 'object' && logger !== null ? Reflect.get(logger, level) : undefined
    checkFunction(`Engine.logger.${level}`, method)
  }
}

function checkErrors(errors: unknown): void {
  if (errors === undefined) return
  if (Array.isArray(errors) && errors.every((each) => typeof each === 'function')) return
  throw new ConfigurationError({
    option: 'Engine.errors',
    problem: 'it takes a list of classes',
    allowed: '[MyError, ...]',
  })
}

function checkDefinitions(definitions: unknown): CheckedEngine['behaviours'] {
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
    behaviours.set(definition.name, { definition, behaviour })
  }
  return behaviours
}
