/**
 * A checked copy of a value, made of nothing but what the format underneath writes faithfully: scalars, plain and
 * null-prototype objects, arrays, Map, Set, Date, and `Stored` for all else. Every property is read once. Shared and
 * cyclic references stay what they are. What can't be stored is refused, naming the path to it.
 *
 * Instances of classes are refused rather than stored without their class: a replay must see what the step returned.
 * A `toJSON` method changes nothing about that. Errors are the exception in one way: a field of an error that can't
 * be stored is left out, as the error itself is worth more than a refusal.
 */
import { types } from 'node:util'
import { SerializationError } from '../errors.ts'
import { lowerBytes } from './bytes.ts'
import { errorFields, errorHead, isError } from './error.ts'
import { entrySegment, indexSegment, pathText, propertySegment } from './path.ts'
import { MOST_PLAIN_LEVELS } from './plain.ts'
import { Stored } from './stored.ts'

/**
 * Containers in containers. The format underneath recurses and reached 1,040 levels on Node's default stack, measured
 * at its top: half of that is the same answer wherever a call is made.
 */
const MOST_LEVELS = 500
/** What an error nests in its stored form, so that chains of causes end before the stack does. */
const ERROR_LEVELS = 3
/** Each hole of a sparse array costs text; an index of a billion would cost all memory. */
const MOST_HOLES = 100_000
/** Larger ones are stored in hexadecimal: the format underneath refuses to read bigints of many digits. */
const SMALL_BIGINT = 2n ** 64n

export function lower(value: unknown): unknown {
  const lowering = new Lowering()
  try {
    return lowering.lower(value)
  } catch (error) {
    throw lowering.asRefusal(error)
  }
}

class Lowering {
  readonly #copies = new Map<object, unknown>()
  /** The keys of `#copies` in order of arrival, to take back those of a field that is left out. */
  readonly #originals: object[] = []
  /** Left as it is when something is thrown: it says where. */
  readonly #path: string[] = []
  #depth = 0

  lower(value: unknown): unknown {
    switch (typeof value) {
      case 'bigint':
        return value < SMALL_BIGINT && value > -SMALL_BIGINT ? value : new Stored('bigint', value.toString(16))
      case 'function':
        return this.#refuse(`it is a function (${nameOf(value) || 'without a name'})`)
      case 'symbol':
        return this.#refuse('it is a symbol')
      case 'object':
        return value === null ? null : (this.#copies.get(value) ?? this.#lowerObject(value))
      default:
        return value
    }
  }

  asRefusal(error: unknown): unknown {
    if (SerializationError.is(error)) return error
    const problem = error instanceof Error ? error.message : 'something that is no error was thrown'
    return new SerializationError(
      { path: pathText(this.#path), problem: `reading it failed: ${problem}` },
      { cause: error },
    )
  }

  #lowerObject(value: object): unknown {
    if (this.#depth >= MOST_LEVELS) {
      this.#refuse(`it is nested deeper than ${MOST_LEVELS} levels (of plain JSON: ${MOST_PLAIN_LEVELS})`)
    }
    if (Array.isArray(value)) return this.#lowerArray(value)
    if (isError(value)) return this.#lowerError(value)
    const className = classNameOf(value)
    if (className === undefined || className === 'Object') return this.#lowerPlain(value, className)
    if (types.isMap(value) && className === 'Map') return this.#lowerMap(value)
    if (types.isSet(value) && className === 'Set') return this.#lowerSet(value)
    const leaf = lowerLeaf(value, className)
    if (leaf === undefined) this.#refuse(`it is an instance of ${className || 'a class'}, which would lose its class`)
    if (!types.isTypedArray(value)) this.#refuseNamed(value)
    return this.#remember(value, leaf)
  }

  #lowerPlain(value: object, className: string | undefined): object {
    this.#refuseSymbols(value)
    const copy: object = this.#remember(value, className === undefined ? Object.create(null) : {})
    for (const key of Object.keys(value)) this.#lowerProperty(value, key, copy)
    return copy
  }

  #lowerProperty(value: object, key: string, copy: object): void {
    const member = this.#within(propertySegment(key), 1, () => this.lower(Reflect.get(value, key)))
    put(copy, key, member)
  }

  #lowerArray(value: readonly unknown[]): unknown[] {
    if (classNameOf(value) !== 'Array') this.#refuse('it is an instance of a subclass of Array')
    this.#refuseSymbols(value)
    const { length } = value
    const copy: unknown[] = this.#remember(value, new Array(length))
    const keys = Object.keys(value)
    if (length - keys.length > MOST_HOLES) this.#refuse(`it has more than ${MOST_HOLES} holes`)
    keys.forEach((key, at) => {
      const index = Number(key)
      if (!(index >= at && index < length)) this.#refuse(`it is an array with a named property (${key.slice(0, 60)})`)
      copy[index] = this.#within(indexSegment(index), 1, () => this.lower(Reflect.get(value, key)))
    })
    return copy
  }

  #lowerMap(value: ReadonlyMap<unknown, unknown>): Map<unknown, unknown> {
    this.#refuseNamed(value)
    const copy = this.#remember(value, new Map<unknown, unknown>())
    let index = 0
    for (const [key, member] of value) {
      const keyCopy = this.#within(`.keys()[${index}]`, 1, () => this.lower(key))
      copy.set(
        keyCopy,
        this.#within(entrySegment(key, index), 1, () => this.lower(member)),
      )
      index++
    }
    return copy
  }

  #lowerSet(value: ReadonlySet<unknown>): Set<unknown> {
    this.#refuseNamed(value)
    const copy = this.#remember(value, new Set<unknown>())
    let index = 0
    for (const member of value) copy.add(this.#within(`.values()[${index++}]`, 1, () => this.lower(member)))
    return copy
  }

  #lowerError(error: Error): Stored {
    const head = errorHead(error)
    const { enumerable, hidden } = errorFields(error)
    const body = { enumerable: {}, hidden: {} }
    const { classes, name, message, stack } = head
    const stored = this.#remember(error, new Stored('error', [[...classes], name, message, stack], body))
    for (const key of enumerable) this.#lowerErrorField(error, key, body.enumerable)
    for (const key of hidden) this.#lowerErrorField(error, key, body.hidden)
    return stored
  }

  #lowerErrorField(error: Error, key: string, fields: object): void {
    const known = this.#originals.length
    const depth = this.#depth
    const level = this.#path.length
    try {
      const field = this.#within(propertySegment(key), ERROR_LEVELS, () => this.lower(Reflect.get(error, key)))
      put(fields, key, field)
    } catch {
      for (const original of this.#originals.splice(known)) this.#copies.delete(original)
      this.#path.length = level
      this.#depth = depth
    }
  }

  #within<T>(segment: string, levels: number, step: () => T): T {
    this.#path.push(segment)
    this.#depth += levels
    const result = step()
    this.#depth -= levels
    this.#path.pop()
    return result
  }

  #remember<T>(original: object, copy: T): T {
    this.#copies.set(original, copy)
    this.#originals.push(original)
    return copy
  }

  #refuseNamed(value: object): void {
    if (Object.keys(value).length > 0) this.#refuse('it has properties of its own beside its content')
    this.#refuseSymbols(value)
  }

  #refuseSymbols(value: object): void {
    const isEnumerable = (key: symbol): boolean => Object.prototype.propertyIsEnumerable.call(value, key)
    if (Object.getOwnPropertySymbols(value).some(isEnumerable)) this.#refuse('it has a property whose key is a symbol')
  }

  #refuse(problem: string): never {
    throw new SerializationError({ path: pathText(this.#path), problem })
  }
}

function lowerLeaf(value: object, className: string): unknown {
  if (types.isDate(value)) return className === 'Date' ? new Date(value.getTime()) : undefined
  if (types.isRegExp(value)) {
    return className === 'RegExp' ? new Stored('regexp', [value.source, value.flags, value.lastIndex]) : undefined
  }
  if (value instanceof URL) return className === 'URL' ? new Stored('url', value.href) : undefined
  return lowerBytes(value, className)
}

/**
 * The class of an object by its own prototype; undefined for none. By name, as a value may come from another realm
 * (a vm context, as test runners use), whose Object is not ours.
 */
function classNameOf(value: object): string | undefined {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null) return undefined
  if (typeof prototype !== 'object') return ''
  if (prototype === Object.prototype) return 'Object'
  const maker: unknown = Object.hasOwn(prototype, 'constructor') ? Reflect.get(prototype, 'constructor') : undefined
  const name = typeof maker === 'function' ? nameOf(maker) : ''
  return name === 'Object' && Object.getPrototypeOf(prototype) !== null ? '' : name
}

/** A class may have a static member called `name`. */
function nameOf(maker: object): string {
  const name: unknown = Reflect.get(maker, 'name')
  return typeof name === 'string' ? name.slice(0, 60) : ''
}

/** Assignment to `__proto__` would set the prototype. */
function put(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}
