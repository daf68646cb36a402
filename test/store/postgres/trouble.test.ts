/** What errors of the server and of the driver become. */
import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  StoreClosedError,
  StoreCorruptError,
  StoreUnavailableError,
} from '../../../src/core/errors.ts'
import { UnreadableValueError } from '../../../src/store/columns.ts'
import { Interference, LockedError } from '../../../src/store/postgres/session.ts'
import {
  driverError,
  explained,
  explainedOpening,
  isForgotten,
  isInterference,
  spoilsConnection,
  unavailable,
} from '../../../src/store/postgres/trouble.ts'

function serverError(code: string, message = 'no', severity = 'ERROR'): Error {
  return Object.assign(new Error(message), { code, severity })
}

function expectTrouble(error: unknown, expected: unknown): void {
  expect(explained('postgres app', driverError(error))).toBeInstanceOf(expected)
}

describe('an error of the server', () => {
  it.each([
    '08006',
    '53100',
    '53300',
    '57014',
    '57P01',
    '57P03',
    '58030',
    '25006',
    '28P01',
    '3D000',
    '42501',
    '25P03',
    '0A000',
  ])('%s is trouble that passes', (code) => expectTrouble(serverError(code), StoreUnavailableError))

  it.each(['55P03', '40P01'])('%s is a lock that somebody holds', (code) => {
    expectTrouble(serverError(code), LockedError)
    expect(unavailable('postgres app', explained('postgres app', serverError(code)))).toBeInstanceOf(
      StoreUnavailableError,
    )
  })

  it.each(['XX001', 'XX002'])('%s is corruption', (code) => expectTrouble(serverError(code), StoreCorruptError))

  it.each(['23505', '22021', '22003', '54000', '42601'])(
    '%s is the refusal of a command, and stays as it is',
    (code) => {
      const error = serverError(code)
      expect(explained('postgres app', driverError(error))).toBe(error)
    },
  )

  it.each(['26000', '42P05'])('%s, of a statement prepared by name, says how to do without', (code) => {
    expect(isForgotten(serverError(code))).toBe(true)
    expect(spoilsConnection(serverError(code))).toBe(true)
    expect(explained('postgres app', serverError(code))).toMatchObject({
      message: expect.stringContaining('prepare: false'),
    })
  })

  it('about a stale plan is worth another connection, another feature that is missing is not', () => {
    expect(isForgotten(serverError('0A000', 'cached plan must not change result type'))).toBe(true)
    expect(isForgotten(serverError('0A000'))).toBe(false)
  })

  it('that is fatal spoils the connection', () => {
    expect(spoilsConnection(serverError('57P01', 'no', 'FATAL'))).toBe(true)
    expect(spoilsConnection(serverError('23505'))).toBe(false)
  })

  it('about a conflict of transactions is worth another try', () => {
    expect(isInterference(serverError('40001'))).toBe(true)
    expect(isInterference(new Interference('a test'))).toBe(true)
    expect(isInterference(serverError('40P01'))).toBe(false)
  })
})

describe('an error of the driver', () => {
  it.each([
    new Error('Connection terminated unexpectedly'),
    new Error('Query read timeout'),
    Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }),
  ])('%s is trouble that passes', (error) => {
    expectTrouble(error, StoreUnavailableError)
    expect(spoilsConnection(driverError(error))).toBe(true)
  })

  it('about several addresses of a host names each', () => {
    const errors = ['connect ECONNREFUSED ::1:5432', 'connect ECONNREFUSED 127.0.0.1:5432'].map(
      (text) => new Error(text),
    )
    const error = explained('postgres app', driverError(new AggregateError(errors)))
    expect(error).toMatchObject({ message: expect.stringMatching(/::1:5432; .*127\.0\.0\.1/) })
  })

  it('that is a mistake of ours stays one', () => {
    const error = new TypeError('undefined is not a function')
    expect(explained('postgres app', driverError(error))).toBe(error)
  })
})

describe('an error of the store', () => {
  it('stays what it is; a row that can not be read is corruption', () => {
    const closed = new StoreClosedError({ store: 'postgres app' })
    expect(explained('postgres app', closed)).toBe(closed)
    expect(explained('postgres app', new UnreadableValueError('what'))).toBeInstanceOf(StoreCorruptError)
  })
})

describe('while the store is opened', () => {
  it.each(['28P01', '28000', '3D000', '42501'])('%s is a mistake of configuration', (code) => {
    expect(explainedOpening('postgres app', '"perdure"', serverError(code))).toBeInstanceOf(ConfigurationError)
  })

  it.each(['57P03', '53300', '55P03'])('%s is trouble that passes', (code) => {
    expect(explainedOpening('postgres app', '"perdure"', serverError(code))).toBeInstanceOf(StoreUnavailableError)
  })
})
