/** Counts the statements that the driver of this process executes, apart from the look whether the file has changed. */
import Database from 'better-sqlite3'

let count = 0
const UNCOUNTED = /^\s*pragma data_version/i

const { prepare } = Database.prototype
Database.prototype.prepare = function counted<Bind extends unknown[], Result>(this: Database.Database, source: string) {
  const statement = prepare.call(this, source)
  if (UNCOUNTED.test(source)) return statement
  for (const method of ['get', 'all', 'run'] as const) {
    const original: unknown = Reflect.get(statement, method)
    if (typeof original !== 'function') continue
    Reflect.set(statement, method, (...parameters: unknown[]): unknown => {
      count += 1
      return Reflect.apply(original, statement, parameters)
    })
  }
  return statement as Database.Statement<Bind, Result>
} as typeof prepare

/** Executed so far. */
export function statements(): number {
  return count
}
