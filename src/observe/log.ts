/** The log: a subscriber of the engine's events that says in a line what somebody should know. */
import type { EngineEvent } from '../core/engine-events.ts'
import type { Emitter } from '../core/events.ts'

/** What the engine logs to: `console`, pino and winston fit. */
export interface Logger {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** Without a logger of the user's: what is wrong goes to the console, the rest nowhere. */
export const quietConsole: Logger = {
  debug: () => {},
  info: () => {},
  warn: (message, fields) => console.warn(`perdure: ${message}`, ...(fields === undefined ? [] : [fields])),
  error: (message, fields) => console.error(`perdure: ${message}`, ...(fields === undefined ? [] : [fields])),
}

export const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const harmlessOf = new WeakMap<Logger, Logger>()

/** The logger as an engine uses it: one that throws, or whose promise rejects, fails no run and ends no process. */
export function harmless(logger: Logger): Logger {
  const known = harmlessOf.get(logger)
  if (known !== undefined) return known
  const made = guarded(logger)
  harmlessOf.set(logger, made)
  return made
}

function guarded(logger: Logger): Logger {
  const guard =
    (level: (typeof LOG_LEVELS)[number]): Logger['info'] =>
    (...line) => {
      try {
        // Typed as returning nothing, which an async function is assignable to.
        const written: unknown = logger[level](...line)
        if (written instanceof Promise) written.catch(() => {})
      } catch {
        // There is nobody left to tell.
      }
    }
  return { debug: guard('debug'), info: guard('info'), warn: guard('warn'), error: guard('error') }
}

const logged = new WeakMap<Emitter<EngineEvent>, Map<Logger, { users: number; readonly off: () => void }>>()

/**
 * Writes what is emitted to the log. Engines and clients that share a store and a logger share its lines: each event is
 * one. Returns the way to stop.
 */
export function logEvents(events: Emitter<EngineEvent>, logger: Logger): () => void {
  const byLogger = logged.get(events) ?? new Map<Logger, { users: number; readonly off: () => void }>()
  logged.set(events, byLogger)
  const entry = byLogger.get(logger) ?? { users: 0, off: events.on((event) => logEvent(logger, event)) }
  byLogger.set(logger, entry)
  entry.users += 1
  let stopped = false
  return () => {
    if (stopped) return
    stopped = true
    entry.users -= 1
    if (entry.users > 0) return
    entry.off()
    byLogger.delete(logger)
  }
}

/** Writes an event to the log, at the level it deserves. */
export function logEvent(logger: Logger, event: EngineEvent): void {
  const { type, ...fields } = event
  switch (type) {
    case 'store.trouble':
    case 'service.failed':
    case 'delivery.abandoned':
      logger.error(MESSAGES[type], fields)
      break
    case 'claim.lost':
    case 'call.dropped':
    case 'calls.notMade':
    case 'runs.reclaimed':
    case 'store.recovered':
    case 'effect.refused':
    case 'start.keyless':
    case 'start.partitionKeyIgnored':
    case 'start.priorityIgnored':
    case 'queue.changed':
    case 'queue.differs':
      logger.warn(MESSAGES[type], fields)
      break
    case 'outcome.discarded':
      logger.info(MESSAGES[type], fields)
      break
    default:
      logger.debug(MESSAGES[type], fields)
  }
}

const MESSAGES: Readonly<Record<EngineEvent['type'], string>> = {
  'run.started': 'run started',
  'run.suspended': 'run suspended until what it waits for is there',
  'run.ended': 'run ended',
  'run.released': 'run handed back',
  'runs.reclaimed': 'claims of dead processes, or whose lease had ended, were taken over',
  'claim.lost': 'claim lost: another process has the run now; nothing more was written for it here',
  'delivery.abandoned': 'delivery given up; the run is taken over when its lease ends',
  'call.dropped': 'a durable call was made after its pass was over and never settles: await ctx calls only',
  'calls.notMade': 'a run ended before durable calls that it had not awaited could begin: nothing came of them',
  'outcome.discarded': 'a step ended after its run: its outcome is not recorded',
  'effect.refused': 'a run that a step started by its effects was refused; all else of the step took effect',
  'start.keyless': 'the run is never dispatched: its queue is partitioned, and it was started without a partitionKey',
  'start.partitionKeyIgnored': 'partition keys are ignored on this queue, as it is not partitioned; told once',
  'start.priorityIgnored': 'priorities are ignored here (without a queue, or if it is not priorityEnabled); told once',
  'queue.changed':
    'this launch changed the knobs that the queue has in all processes: an engine without them leaves none',
  'queue.differs': 'other knobs hold for this queue than this engine was given: somebody else has changed them',
  'runs.removed': 'runs were removed, as their retention says',
  'store.trouble': 'the store cannot be used now; waiting for it',
  'store.recovered': 'the store can be used again',
  'service.failed': 'a round of a background service failed; it goes on',
}
