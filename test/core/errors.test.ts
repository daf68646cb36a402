import { readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { ERROR_TABLE } from '../../src/core/error-table.ts'
import {
  ClaimLostError,
  ERROR_CLASSES,
  InputMismatchError,
  isErrorCode,
  MissingDriverError,
  NonDeterminismError,
  PerdureError,
  RunCancelledError,
  RunFailedError,
  StoreUnavailableError,
  TimeoutError,
  UnknownDefinitionError,
  ValidationError,
} from '../../src/core/errors.ts'
import { SAMPLES } from './error-samples.ts'

const CODES = Object.keys(ERROR_TABLE).filter(isErrorCode)

describe('every error', () => {
  it.each(CODES)('%s has its code, name, fields and place in the docs', (code) => {
    const error = SAMPLES[code]
    const errorClass = ERROR_CLASSES[code]
    expect(error).toBeInstanceOf(errorClass)
    expect(error).toBeInstanceOf(PerdureError)
    expect(error.name).toBe(errorClass.name)
    expect(error.code).toBe(code)
    expect(error.docs).toBe(`docs/errors.md#${code.toLowerCase()}`)
    expect(`${errorClass.name.replace(/Error$/, '').replace(/(?<=[a-z])(?=[A-Z])/g, '_')}`.toUpperCase()).toBe(code)
    expect(error.stack?.startsWith(`${error.name}: ${error.message}\n`)).toBe(true)
    expect(Reflect.apply(PerdureError.is, errorClass, [error])).toBe(true)
    expect(error.retryable).toBe(ERROR_TABLE[code].retryable)
    expect(Object.keys(error)).not.toContain('name')
    expect(error.message).not.toMatch(/undefined|\[object|\.\.$/)
  })

  it('has its details as own fields, those that would hide the name of the error by another', () => {
    expect(new RunFailedError({ runId: 'r', kind: 'error', attempts: 2 })).toMatchObject({
      runId: 'r',
      kind: 'error',
      attempts: 2,
    })
    expect(new UnknownDefinitionError({ name: 'x', known: [] })).toMatchObject({ definition: 'x', known: [] })
  })

  it('keeps the cause', () => {
    const cause = new Error('inner')
    expect(new RunFailedError({ runId: 'r', kind: 'error', attempts: 1 }, { cause }).cause).toBe(cause)
    expect('cause' in new TimeoutError({ runId: 'r', timeoutMs: 1 })).toBe(false)
  })
})

describe('messages', () => {
  it('name the run and say what to do', () => {
    for (const code of CODES) {
      const error = SAMPLES[code]
      if ('runId' in error) expect(error.message).toContain('order-17')
    }
  })

  it('fit what happened', () => {
    const other = { runId: 'r', definition: 'a', existingDefinition: 'b' }
    expect(new InputMismatchError(other).message).toMatch(/as a run of 'b', not of 'a'/)
    expect(new RunCancelledError({ runId: 'r', reason: 'timeout' }).message).toMatch(/its timeout passed/)
    expect(new RunFailedError({ runId: 'r', kind: 'crashed', attempts: 1 }).message).toMatch(
      /\(crashed\) after 1 attempt\./,
    )
    expect(new RunFailedError({ runId: 'r', kind: 'error', attempts: 1, reason: 'It broke.' }).message).toMatch(
      /: It broke\. The/,
    )
    expect(new UnknownDefinitionError({ name: 'x', known: [] }).message).toMatch(/None is registered/)
    expect(new MissingDriverError({ store: 's', drivers: ['a', 'b'] }).message).toMatch(/npm install a \(or: b\)\.$/)
    const nowhere = { runId: 'r', position: 0, recorded: 'nothing', called: "step 'a'", site: '' }
    expect(new NonDeterminismError(nowhere).message).not.toContain('()')
    const issues = [{ message: 'wrong' }, { message: 'missing', path: 'a.b' }]
    expect(new ValidationError({ what: 'input', issues }).message).toContain('wrong; a.b: missing.')
  })
})

describe('PerdureError.is', () => {
  it('knows errors of this class only, and the base all of them', () => {
    const error: unknown = new ClaimLostError({ runId: 'r' })
    expect(PerdureError.is(error)).toBe(true)
    expect(ClaimLostError.is(error)).toBe(true)
    expect(TimeoutError.is(error)).toBe(false)
  })

  it('knows errors of another copy of the package', async () => {
    vi.resetModules()
    const copy = await import('../../src/core/errors.ts')
    const error: unknown = new copy.StoreUnavailableError({ store: 's', problem: 'p' })
    expect(error).not.toBeInstanceOf(StoreUnavailableError)
    expect(PerdureError.is(error)).toBe(true)
    expect(StoreUnavailableError.is(error)).toBe(true)
    expect(ClaimLostError.is(error)).toBe(false)
  })

  it('knows none of other libraries, whatever their code, nor anything that is no error', () => {
    const others = [
      Object.assign(new Error('x'), { code: 'TIMEOUT' }),
      Object.assign(new Error('x'), { code: 'TIMEOUT', docs: 'https://example.com/#timeout' }),
      Object.assign(new Error('x'), { code: 'ENOENT' }),
      new Error('x'),
      { code: 'TIMEOUT', docs: 'docs/errors.md#timeout' },
      null,
      undefined,
      'TIMEOUT',
    ]
    for (const other of others) expect(PerdureError.is(other)).toBe(false)
  })
})

describe('docs/errors.md', () => {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  const sections = page.split(/^## /m).slice(1)

  it('explains every code once, in the order of the table, and nothing else', () => {
    expect(sections.map((section) => section.split('\n')[0])).toEqual(CODES)
  })

  it.each(CODES)('says of %s its class, whether to retry, an example as thrown, the cause and the way out', (code) => {
    const section = sections.find((candidate) => candidate.startsWith(`${code}\n`)) ?? ''
    const { name, retryable, message } = SAMPLES[code]
    expect(section).toContain(`\`${name}\`, ${retryable ? 'retryable' : 'not retryable'}.`)
    expect(section.replace(/\n> /g, ' ')).toContain(`\n ${message}\n`.slice(1))
    expect(section).toMatch(/^\*\*Cause\.\*\* \S/m)
    expect(section).toMatch(/^\*\*Way out\.\*\* \S/m)
  })

  it('lists the own fields of each error', () => {
    for (const code of CODES) {
      const section = sections.find((candidate) => candidate.startsWith(`${code}\n`)) ?? ''
      const own = Object.keys(SAMPLES[code]).filter((key) => !['code', 'retryable', 'docs'].includes(key))
      for (const field of own) expect(section).toContain(`\`${field}\``)
    }
  })
})
