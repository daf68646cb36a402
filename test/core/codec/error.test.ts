import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { types } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createCodec, type ErrorClass } from '../../../src/core/codec.ts'
import {
  ConfigurationError,
  InputMismatchError,
  PerdureError,
  RunFailedError,
  TimeoutError,
} from '../../../src/core/errors.ts'

class PaymentError extends Error {
  override readonly name: string = 'PaymentError'
  readonly amount: number

  constructor(amount: number, options?: ErrorOptions) {
    super(`${amount.toFixed(2)} refused`, options)
    this.amount = amount
  }

  get cents(): number {
    return this.amount * 100
  }
}
class CardError extends PaymentError {
  readonly details = { at: new Date(5), last4: '4242' }
}

function through(error: unknown, errors: readonly ErrorClass[] = []): Error {
  const codec = createCodec({ errors })
  const read = codec.decode(createCodec().encode(error))
  assert(read instanceof Error)
  return read
}

describe('errors', () => {
  it('keep name, message, stack, cause and own fields (A-06, A-07)', () => {
    const error = new CardError(5, { cause: new TypeError('inner', { cause: { code: 7, at: new Date(1) } }) })
    const read = through(error)
    expect(read.constructor).toBe(Error)
    const { name, message, stack, cause, amount, details } = error
    expect({ ...read }).toEqual({ name, amount, details })
    expect([read.name, read.message, read.stack]).toEqual([name, message, stack])
    expect(read.cause).toBeInstanceOf(TypeError)
    assert.deepStrictEqual(read.cause, cause)
  })

  it('print and are recognised as native ones, of a registered class too', () => {
    for (const read of [through(new CardError(5)), through(new CardError(5), [CardError])]) {
      expect(types.isNativeError(read)).toBe(true)
      expect(Object.keys(read).sort()).toEqual(['amount', 'details', 'name'])
    }
  })

  it('of a registered class come back as instances of it, its constructor not called (A-06, A-16, G-10)', () => {
    const read = through(new PaymentError(5), [PaymentError])
    assert(read instanceof PaymentError)
    expect([read.amount, read.cents, read.message]).toEqual([5, 500, '5.00 refused'])
  })

  it('come back as the nearest class that is registered', () => {
    const read = through(new CardError(5), [PaymentError])
    expect(Object.getPrototypeOf(read)).toBe(PaymentError.prototype)
    expect(Object.getPrototypeOf(through(new CardError(5), [PaymentError, CardError]))).toBe(CardError.prototype)
  })

  it('are recognised by name when their class has none to go by', () => {
    const read = through(Object.assign(new Error('5.00 refused'), { name: 'PaymentError', amount: 5 }), [PaymentError])
    expect(read).toBeInstanceOf(PaymentError)
  })

  it('keep their class on the way through a process that does not know it', () => {
    const between = through(new CardError(5))
    expect(between).not.toBeInstanceOf(PaymentError)
    expect(through(between, [PaymentError, CardError])).toBeInstanceOf(CardError)
  })

  it('built in come back as themselves, system errors with their code', () => {
    for (const builtIn of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
      assert.deepStrictEqual(through(new builtIn('x')), new builtIn('x'))
    }
    let missing: unknown
    try {
      readFileSync('/does/not/exist')
    } catch (error) {
      missing = error
    }
    expect(through(missing)).toMatchObject({ code: 'ENOENT', syscall: 'open', path: '/does/not/exist' })
  })

  it('of an AggregateError keep its errors (A-07)', () => {
    const read = through(new AggregateError([new RangeError('one'), 'two', new PaymentError(3)], 'several'), [
      PaymentError,
    ])
    assert(read instanceof AggregateError)
    expect(read.message).toBe('several')
    expect(read.errors).toEqual([new RangeError('one'), 'two', expect.any(PaymentError)])
    expect(Object.keys(read)).toEqual([])
  })

  it('of an abort come back as DOMException', () => {
    for (const reason of [AbortSignal.abort().reason, new DOMException('late', 'TimeoutError')]) {
      const read = through(reason)
      assert(read instanceof DOMException)
      expect([read.name, read.message, read.code]).toEqual([reason.name, reason.message, reason.code])
    }
  })

  it("of the library keep class, code and fields, beside an application's class of the same name", () => {
    const Named = { TimeoutError: class extends Error {} }.TimeoutError
    const own = through(new TimeoutError({ runId: 'r', timeoutMs: 5 }), [Named])
    assert(own instanceof TimeoutError)
    expect(own).toMatchObject({ code: 'TIMEOUT', retryable: true, runId: 'r', timeoutMs: 5, name: 'TimeoutError' })
    expect(through(new Named('x'), [Named])).toBeInstanceOf(Named)
    const failed = through(
      new RunFailedError({ runId: 'r', kind: 'error', attempts: 1 }, { cause: new PaymentError(1) }),
      [PaymentError],
    )
    expect(failed).toBeInstanceOf(RunFailedError)
    expect(failed.cause).toBeInstanceOf(PaymentError)
  })

  it('of another copy of the library are those of this one', () => {
    class PaymentMismatch extends InputMismatchError {}
    const read = through(new PaymentMismatch({ runId: 'r', definition: 'a', existingDefinition: 'b' }))
    expect(PerdureError.is(read)).toBe(true)
    expect(read).toBeInstanceOf(InputMismatchError)
  })

  it('lose fields that can not be stored, and nothing else', () => {
    const shared = { at: new Date(5) }
    const error = Object.assign(new Error('socket hang up', { cause: () => 1 }), {
      code: 'ECONNRESET',
      config: { shared, transform: () => 1 },
      shared,
    })
    const dead = (): never => {
      throw new Error('not any more')
    }
    Object.defineProperty(error, 'request', { enumerable: true, get: dead })
    Object.defineProperty(error, 'response', { enumerable: true, get: () => ({ shared, body: new ReadableStream() }) })
    const read = through(error)
    expect({ ...read }).toEqual({ code: 'ECONNRESET', shared })
    expect('cause' in read).toBe(false)
  })

  it('leave nothing behind of what they lose', () => {
    const config = { half: 1, transform: () => 1 }
    const error: Error = Object.assign(new Error('x'), { config, again: config })
    for (let field = 0; field < 300; field++) Object.assign(error, { [`bad${field}`]: { deep: () => 1 } })
    expect({ ...through(Object.assign(error, { good: { deep: [1] } })) }).toEqual({ good: { deep: [1] } })
    expect(() => createCodec().encode([error, () => 1])).toThrow(/^The value at \$\[1\] /)
  })

  it('keep odd names, messages and fields', () => {
    const odd = Object.assign(new Error('\0\ud800'), JSON.parse('{"__proto__":1,"constructor":2,"name":"\\u0000"}'))
    const read = through(odd)
    expect([read.name, read.message]).toEqual(['\0', '\0\ud800'])
    const nameless = Object.create(Error.prototype, { name: { value: 7 }, message: { value: { a: 1 } } })
    expect(through(nameless)).toBeInstanceOf(Error)
  })

  it('may be anything that can be thrown (A-14)', () => {
    const codec = createCodec()
    for (const thrown of ['text', 42, null, undefined, { a: 1 }]) {
      expect(codec.decode(codec.encode(thrown))).toEqual(thrown)
    }
  })
})

describe('registered classes', () => {
  it('are classes of errors with names of their own', () => {
    const Other = { PaymentError: class extends Error {} }.PaymentError
    const BuiltIn = { TypeError: class extends Error {} }.TypeError
    for (const errors of [[PaymentError, Other], [BuiltIn]]) {
      expect(() => createCodec({ errors })).toThrow(ConfigurationError)
      expect(() => createCodec({ errors })).toThrow(/two error classes are named/)
    }
    expect(() => createCodec({ errors: [class extends Error {}] })).toThrow(/has no name/)
    // @ts-expect-error: a class that is not one of errors
    expect(() => createCodec({ errors: [Map] })).toThrow(/not a class that extends Error/)
    expect(() => createCodec({ errors: [PaymentError, PaymentError, TypeError] })).not.toThrow()
  })
})
