/** Opens a store where `pg` is not installed, and says what comes of it. */
import { register } from 'node:module'
import { PerdureError } from '../../../../src/core/errors.ts'

const HOOKS = `export async function resolve(specifier, context, next) {
  if (specifier !== 'pg') return next(specifier, context)
  throw Object.assign(new Error('Cannot find package pg'), { code: 'ERR_MODULE_NOT_FOUND' })
}`
register(`data:text/javascript,${encodeURIComponent(HOOKS)}`)

const { postgres } = await import('../../../../src/store/postgres/index.ts')
try {
  await postgres('postgres://user@localhost/app').open()
} catch (error) {
  process.stdout.write(PerdureError.is(error) ? `${error.code} ${error.message}` : String(error))
}
