/**
 * Errors as data and back. Kept: name, message, stack, cause, `errors` and all other own fields, enumerable or not as
 * they were. The names of the error's classes are kept too, so that it is the reader who decides which of them it
 * knows: the library's own, those registered, those built in.
 *
 * Constructors of registered classes are not called: they expect arguments that nobody has. The object is a native
 * Error with the class's prototype, so it prints and is recognised like one.
 */
import { types } from 'node:util'
import { ERROR_TABLE } from '../error-table.ts'
import { ConfigurationError, ERROR_CLASSES, isErrorCode, PerdureError } from '../errors.ts'

export type ErrorClass = abstract new (...args: never[]) => Error

/** Error classes by name. */
export type ErrorRegistry = ReadonlyMap<string, ErrorClass>

export interface ErrorHead {
  /** The nearest class first. */
  readonly classes: readonly string[]
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
}

const BUILT_IN: ErrorRegistry = new Map<string, ErrorClass>(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError].map((errorClass) => [
    errorClass.name,
    errorClass,
  ]),
)
/** Marks a class of the library itself: an application may well have a TimeoutError of its own. */
const OWN = 'perdure:'

/**
 * What a decoded error was, where this process doesn't know all of its classes: passed on when the error is encoded
 * again, so that a process in between takes nothing away.
 */
const classesRead = new WeakMap<Error, readonly string[]>()

/** @throws ConfigurationError for what is not an error class, or has the name of another. */
export function errorRegistry(classes: readonly ErrorClass[]): ErrorRegistry {
  const registry = new Map<string, ErrorClass>()
  for (const errorClass of classes) {
    if (typeof errorClass !== 'function' || !(errorClass.prototype instanceof Error)) {
      throw new ConfigurationError({ option: 'errors', problem: 'an entry is not a class that extends Error' })
    }
    const { name } = errorClass
    const known = registry.get(name) ?? BUILT_IN.get(name)
    if (name === '' || (known !== undefined && known !== errorClass)) {
      const problem = name === '' ? 'an error class has no name' : `two error classes are named '${name}'`
      throw new ConfigurationError({ option: 'errors', problem, allowed: 'classes with names of their own' })
    }
    registry.set(name, errorClass)
  }
  return registry
}

export function isError(value: object): value is Error {
  return value instanceof Error || types.isNativeError(value)
}

export function errorHead(error: Error): ErrorHead {
  return {
    classes: classesRead.get(error) ?? classNames(error),
    name: text(() => error.name, 'Error'),
    message: text(() => error.message, ''),
    stack: text(() => error.stack, '') || undefined,
  }
}

/** Names of own fields: what is set on an error besides its head. */
export function errorFields(error: Error): {
  readonly enumerable: readonly string[]
  readonly hidden: readonly string[]
} {
  const enumerable = Object.keys(error)
  const shown = new Set([...enumerable, 'message', 'stack'])
  return { enumerable, hidden: Object.getOwnPropertyNames(error).filter((key) => !shown.has(key)) }
}

function classNames(error: Error): readonly string[] {
  const names: string[] = []
  let prototype: unknown = Object.getPrototypeOf(error)
  while (typeof prototype === 'object' && prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    names.push(className(error, prototype))
    prototype = Object.getPrototypeOf(prototype)
  }
  return names
}

function className(error: Error, prototype: object): string {
  if (PerdureError.is(error) && Object.hasOwn(prototype, 'name')) {
    if (Reflect.get(prototype, 'name') === ERROR_TABLE[error.code].name) return `${OWN}${error.code}`
  }
  const maker: unknown = Object.hasOwn(prototype, 'constructor') ? Reflect.get(prototype, 'constructor') : undefined
  const name: unknown = typeof maker === 'function' ? maker.name : ''
  return typeof name === 'string' ? name : ''
}

/** A field that throws when read, or is no text, must not take the rest of the error with it. */
function text(read: () => unknown, otherwise: string): string {
  try {
    const value = read()
    return typeof value === 'string' ? value : otherwise
  } catch {
    return otherwise
  }
}

/** The error without its own fields, which may lead back to it. */
export function makeError(head: ErrorHead, registry: ErrorRegistry): Error {
  const { classes, name, message, stack } = head
  const error = classes.includes('DOMException')
    ? new DOMException(message, name)
    : construct(classFor(head, registry), message)
  define(error, 'stack', stack ?? `${name}: ${message}`, false)
  classesRead.set(error, classes)
  return error
}

function classFor({ classes, name }: ErrorHead, registry: ErrorRegistry): ErrorClass {
  for (const className of classes) {
    const errorClass = registry.get(className) ?? ownClass(className)
    if (errorClass !== undefined) return errorClass
  }
  // A plain Error may carry the name of a class all the same: an older one, or one whose class was minified.
  const named = classes[0] === 'Error' ? registry.get(name) : undefined
  return named ?? classes.map((className) => BUILT_IN.get(className)).find((known) => known !== undefined) ?? Error
}

function ownClass(className: string): ErrorClass | undefined {
  const code = className.startsWith(OWN) ? className.slice(OWN.length) : undefined
  return isErrorCode(code) ? ERROR_CLASSES[code] : undefined
}

function construct(errorClass: ErrorClass, message: string): Error {
  const error: unknown = Reflect.construct(Error, message === '' ? [] : [message], errorClass)
  if (error instanceof Error) return error
  throw new TypeError(`'${errorClass.name}' is not a class of errors`)
}

/** Sets the own fields, and the name where neither they nor the class say it. */
export function fillError(error: Error, name: string, enumerable: object, hidden: object): void {
  for (const [key, value] of Object.entries(hidden)) define(error, key, value, false)
  for (const [key, value] of Object.entries(enumerable)) define(error, key, value, true)
  if (error.name !== name) define(error, 'name', name, false)
}

function define(error: Error, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(error, key, { value, enumerable, configurable: true, writable: true })
}
