import { describe, expect, it } from 'vitest'
import { ConfigurationError } from '../../src/core/errors.ts'
import { invariant } from '../../src/core/invariant.ts'
import {
  booleanOption,
  checkFunction,
  checkOptions,
  choiceOption,
  integerOption,
  nearest,
  numberOption,
  textOption,
} from '../../src/core/options.ts'

const ALLOWED = ['workerConcurrency', 'globalConcurrency', 'rateLimiter', 'lease']

describe('checkOptions', () => {
  it('takes plain objects with known options, whatever their values', () => {
    for (const given of [{}, { lease: undefined }, Object.assign(Object.create(null), { rateLimiter: 1 })]) {
      expect(() => checkOptions('queue', given, ALLOWED)).not.toThrow()
    }
  })

  it.each([
    ['workerConcurency', 'workerConcurrency'],
    ['ratelimiter', 'rateLimiter'],
    ['leese', 'lease'],
    ['LEASE', 'lease'],
  ])('answers %s with %s', (option, meant) => {
    const check = (): void => checkOptions('queue', { [option]: 1 }, ALLOWED)
    expect(check).toThrow(ConfigurationError)
    expect(check).toThrow(
      `Option queue.${option}: there is no such option; did you mean '${meant}'? Allowed: ${ALLOWED.join(', ')}.`,
    )
  })

  it('guesses nothing for what is like none', () => {
    expect(() => checkOptions('queue', { colour: 1 }, ALLOWED)).toThrow(/no such option\. Allowed/)
  })

  it.each([null, undefined, 5, 'x', [], new Map(), () => 1, new Date()])(
    'refuses what is no plain object: %o',
    (given) => {
      expect(() => checkOptions('queue', given, ALLOWED)).toThrow(/^Option queue: options are a plain object, not /)
    },
  )
})

describe('single options', () => {
  it('pass what is allowed', () => {
    expect(integerOption('o', 3, 1)).toBe(3)
    expect(numberOption('o', 0.5, 0, 1)).toBe(0.5)
    expect(booleanOption('o', false)).toBe(false)
    expect(textOption('o', 'a')).toBe('a')
    expect(choiceOption('o', 'reject', ['reject', 'returnExisting'])).toBe('reject')
    expect(() => checkFunction('o', () => 1)).not.toThrow()
  })

  it('say what is allowed otherwise', () => {
    for (const value of [0, 1.5, Number.NaN, '1', null]) {
      expect(() => integerOption('limit', value, 1)).toThrow(
        /^Option limit: .* is not allowed\. Allowed: a whole number/,
      )
    }
    for (const value of [-0.1, 1.1, Number.NaN])
      expect(() => numberOption('jitter', value, 0, 1)).toThrow(/from 0 to 1\.$/)
    expect(() => numberOption('factor', 0, 1, Number.MAX_VALUE)).toThrow(/a number of at least 1\.$/)
    expect(() => booleanOption('on', 'true')).toThrow(/Allowed: true or false\.$/)
    expect(() => textOption('name', '')).toThrow(/not empty\.$/)
    expect(() => choiceOption('policy', 'x', ['a', 'b'])).toThrow(
      /Option policy: 'x' is not allowed\. Allowed: 'a', 'b'\.$/,
    )
    expect(() => checkFunction('run', 5)).toThrow(/Allowed: a function\.$/)
  })
})

describe('nearest', () => {
  it('finds names of definitions and queues too', () => {
    expect(nearest('email.sned', ['email.send', 'email.sent', 'report'])).toBe('email.send')
    expect(nearest('x', ['abc'])).toBe(undefined)
    expect(nearest('', ['abc'])).toBe(undefined)
  })
})

describe('invariant', () => {
  it('throws for what must not be', () => {
    expect(() => invariant(true, 'x')).not.toThrow()
    expect(() => invariant(false, 'a run without a row')).toThrow(/a run without a row/)
  })
})
