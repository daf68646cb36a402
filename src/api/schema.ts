/** Any Standard Schema (zod, valibot, arktype, ...): https://standardschema.dev */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { ConfigurationError, ValidationError } from '../core/errors.ts'

export type Schema<I = unknown, O = I> = StandardSchemaV1<I, O>

/** The parsed value. `what` names the value in messages: `input of workflow 'convert'`. Throws ValidationError. */
export async function parse(schema: Schema<unknown>, value: unknown, what: string): Promise<unknown> {
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return result.value
  const issues = result.issues.map(({ message, path }) => {
    const keys = path?.map((segment) => String(typeof segment === 'object' ? segment.key : segment))
    return keys === undefined || keys.length === 0 ? { message } : { message, path: keys.join('.') }
  })
  throw new ValidationError({ what, issues })
}

/** Refuses what is not a Standard Schema. */
export function checkSchema(option: string, schema: unknown): asserts schema is Schema {
  const isObject = (typeof schema === 'object' && schema !== null) || typeof schema === 'function'
  if (isObject && '~standard' in schema) return
  throw new ConfigurationError({
    option,
    problem: 'is not a Standard Schema',
    allowed: 'a schema of a library that implements it (zod 3.24, valibot 1, arktype 2 or later)',
  })
}
