/**
 * From what a caller asks to start to what is stored: which definition it is and what that says, where the run goes,
 * every check that needs no commit. Engines, clients, bodies and steps all start runs through it.
 */
import type { Codec } from '../core/codec.ts'
import { ConfigurationError, UnknownDefinitionError, UnknownQueueError } from '../core/errors.ts'
import { type Ids, sha256Hex } from '../core/ids.ts'
import { kvValue } from '../core/kv-value.ts'
import { checkOwnName } from '../core/names.ts'
import type { NewRun } from '../store/contract.ts'
import type { DefinitionKind } from '../store/records.ts'
import type { Connection } from './connection.ts'
import {
  type AnyDefinition,
  type Behaviour,
  behaviourOf,
  type Placing,
  type RequestedStart,
  type Starter,
} from './definition.ts'
import type { CheckedEngine } from './engine-options.ts'
import { type CheckedStart, checkStart, checkUnqueued } from './start-options.ts'
import { DEFAULT_MAX_RECOVERIES } from './workflow.ts'

/** What is known of the definition of a run that is about to be started. */
interface Target extends Pick<Behaviour, 'queue' | 'maxRecoveries' | 'timeoutMs' | 'parseInput'> {
  readonly name: string
  /** null: nothing but the name is known. */
  readonly kind: DefinitionKind | null
}

/** What is known, where a run is started, of definitions and queues. */
export interface Catalogue {
  /** @throws UnknownDefinitionError, ConfigurationError, InvalidIdError */
  find(target: AnyDefinition | string): Target
  /**
   * Throws UnknownQueueError, or rejects with ConfigurationError for a partition key on a queue without partitions. undefined:
   * the place is as it should be, as most are, and there is nothing to wait for.
   */
  checkPlace(queue: string, partitionKey: string | null): Promise<void> | undefined
}

export interface StartPlannerOptions {
  readonly codec: Codec
  readonly ids: Ids
  readonly catalogue: Catalogue
}

export class StartPlanner implements Starter {
  readonly #options: StartPlannerOptions

  constructor(options: StartPlannerOptions) {
    this.#options = options
  }

  async prepare({ target, input, options }: RequestedStart, placing?: Placing): Promise<NewRun> {
    const { codec, ids, catalogue } = this.#options
    const definition = catalogue.find(target)
    const start = checkStart(options)
    if (placing !== undefined) checkOwnRecord(start)
    const queue = start.queue ?? definition.queue
    if (queue === null) checkUnqueued(start)
    else {
      const look = catalogue.checkPlace(queue, start.partitionKey)
      if (look !== undefined) await look
    }
    if (definition.parseInput !== undefined) await definition.parseInput(input)
    const text = codec.encode(input)
    return {
      id: start.id ?? placing?.id ?? ids.next(),
      definition: definition.name,
      kind: definition.kind,
      queue,
      priority: start.priority,
      partitionKey: start.partitionKey,
      dedup: start.dedup,
      due: start.due,
      input: text,
      inputHash: sha256Hex(codec.canonical(text)),
      maxRecoveries: definition.maxRecoveries,
      timeoutMs: start.timeoutMs ?? definition.timeoutMs,
      parentId: placing?.parentId ?? null,
      kv: this.#puts(start.kv),
      claim: null,
    }
  }

  #puts(kv: CheckedStart['kv']): NewRun['kv'] {
    const { codec } = this.#options
    return kv.map(([key, value]) => ({ type: 'put', key, ...kvValue(codec, key, value) }))
  }
}

/** What a body starts is part of the record of its call. */
function checkOwnRecord({ tx }: CheckedStart): void {
  if (tx === undefined) return
  throw new ConfigurationError({
    option: 'start.tx',
    problem: 'what a body or a step starts is committed with its own record, and with nothing else',
    allowed: 'engine.start with tx, outside of bodies or in that of ctx.transaction',
  })
}

/** An engine starts what it has been given. */
export function engineCatalogue(
  { behaviours, queues }: Pick<CheckedEngine, 'behaviours' | 'queues'>,
  connection: Connection,
): Catalogue {
  return {
    find: (target) => {
      const name = nameOf(target)
      const found = behaviours.get(name)
      if (found === undefined || (typeof target !== 'string' && found.definition !== target)) {
        throw new UnknownDefinitionError({ name, known: [...behaviours.keys()] })
      }
      return targetOf(found.definition, found.behaviour)
    },
    checkPlace: (queue, partitionKey) => {
      const known = queues.get(queue)
      if (known === undefined) throw new UnknownQueueError({ queue, known: [...queues.keys()] })
      if (partitionKey === null || known.registration.partitioned) return undefined
      // It may have been given partitions since this process began.
      return checkPartitioned(queue, connection)
    },
  }
}

async function checkPartitioned(queue: string, connection: Connection): Promise<void> {
  const { store } = await connection.open()
  if ((await store.queues()).some(({ name, partitioned }) => name === queue && partitioned)) return
  throw new ConfigurationError({
    option: 'start.partitionKey',
    problem: `queue '${queue}' is not partitioned`,
    allowed: `partitionKey on a queue with partitioned: true`,
  })
}

/** A client starts anything by name, on any queue: who runs it knows more. A definition object tells what it is. */
export const clientCatalogue: Catalogue = {
  find: (target) => {
    if (typeof target === 'string') return byName(target)
    const behaviour = behaviourOf(target)
    if (behaviour !== undefined) return targetOf(target, behaviour)
    throw new ConfigurationError({
      option: 'start',
      problem: 'it takes a definition or its name',
      allowed: 'what workflow(...) gives, or a text',
    })
  },
  checkPlace: () => undefined,
}

function byName(name: string): Target {
  checkOwnName('definition name', name)
  return {
    name,
    kind: null,
    queue: null,
    maxRecoveries: DEFAULT_MAX_RECOVERIES,
    timeoutMs: null,
    parseInput: undefined,
  }
}

function targetOf({ name, kind }: AnyDefinition, behaviour: Behaviour): Target {
  const { queue, maxRecoveries, timeoutMs, parseInput } = behaviour
  return { name, kind, queue, maxRecoveries, timeoutMs, parseInput }
}

/** What callers without types give may be anything. */
function nameOf(target: unknown): string {
  if (typeof target !== 'object' || target === null) return String(target)
  return 'name' in target ? String(target.name) : 'an object without a name'
}
