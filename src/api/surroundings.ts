/** What engines and clients are both given: a store, a logger, error classes. */
import { type Codec, createCodec, type ErrorClass } from '../core/codec.ts'
import { ConfigurationError } from '../core/errors.ts'
import { checkFunction } from '../core/options.ts'
import { harmless, LOG_LEVELS, type Logger, quietConsole } from '../observe/log.ts'
import type { Store } from '../store/contract.ts'

export function checkStore(of: 'Engine' | 'Client', store: unknown): asserts store is Store {
  if (typeof store === 'object' && store !== null && 'commit' in store && 'claim' in store) return
  const allowed = "sqlite('app.db') from 'perdure/sqlite', or memory() from 'perdure/memory'"
  throw new ConfigurationError({ option: `${of}.store`, problem: 'is not a store', allowed })
}

export function loggerOf(of: 'Engine' | 'Client', logger: Logger = quietConsole): Logger {
  for (const level of LOG_LEVELS) {
    const method: unknown = typeof logger === 'object' && logger !== null ? Reflect.get(logger, level) : undefined
    checkFunction(`${of}.logger.${level}`, method)
  }
  return harmless(logger)
}

export function codecWith(of: 'Engine' | 'Client', errors: readonly ErrorClass[] | undefined): Codec {
  if (errors === undefined) return createCodec()
  if (Array.isArray(errors) && errors.every((each) => typeof each === 'function')) return createCodec({ errors })
  throw new ConfigurationError({
    option: `${of}.errors`,
    problem: 'it takes a list of classes',
    allowed: '[MyError, ...]',
  })
}
