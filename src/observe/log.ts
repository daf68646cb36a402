/** The log: a subscriber of the engine's events that says in a line what somebody should know. */
import type { EngineEvent } from '../core/engine-events.ts'

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

/** The logger as an engine uses it: one that throws, or whose promise rejects, fails no run and ends no process. */
export function harmless(logger: Logger): Logger {
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
    case 'runs.reclaimed':
    case 'store.recovered':
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
  'run.suspended': 'run suspended until its timer',
  'run.ended': 'run ended',
  'run.released': 'run handed back',
  'runs.reclaimed': 'claims of dead processes, or whose lease had ended, were taken over',
  'claim.lost': 'claim lost: another process has the run now; nothing more was written for it here',
  'delivery.abandoned': 'delivery given up; the run is taken over when its lease ends',
  'call.dropped': 'a durable call was made after its pass was over and never settles: await ctx calls only',
  'outcome.discarded': 'a step ended after its run: its outcome is not recorded',
  'store.trouble': 'the store cannot be used now; waiting for it',
  'store.recovered': 'the store can be used again',
  'service.failed': 'a round of a background service failed; it goes on',
}
