/**
 * Looks at the file before SQLite does: opening it as a database could already change it.
 *
 * Never opens it itself. On POSIX systems whoever closes a file drops all locks that its process has on it, those of
 * SQLite's other connections included: another process would then take itself for the last, and remove the log that
 * this one still writes to.
 */
import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigurationError, StoreUnavailableError } from '../../core/errors.ts'

/** Refuses paths that name no file. */
export function checkPath(path: unknown): asserts path is string {
  if (typeof path !== 'string' || path.includes('\0')) {
    const problem = typeof path === 'string' ? 'it contains a NUL' : 'it is not a text'
    throw new ConfigurationError({ option: 'path', problem, allowed: "the path of a file, such as 'app.db'" })
  }
  if (path === '' || path.includes(':memory:')) {
    throw new ConfigurationError({
      option: 'path',
      problem:
        `${JSON.stringify(path)} is a database in memory, which only one connection could see; ` +
        `use memory() of 'perdure/memory', or a file`,
    })
  }
  if (path.startsWith('file:')) {
    throw new ConfigurationError({
      option: 'path',
      problem: 'it is a URI; give a plain path, such as fileURLToPath(uri)',
    })
  }
}

/**
 * `new`: there is no file yet, or an empty one. Throws if the file may not be read and written: SQLite opens one that
 * is read-only without a word, and refuses the first commit.
 */
export function inspectFile(path: string, store: string): 'new' | 'database' {
  try {
    const file = statSync(path, { throwIfNoEntry: false })
    if (file !== undefined) {
      accessSync(path, constants.R_OK | constants.W_OK)
      return file.size === 0 ? 'new' : 'database'
    }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new StoreUnavailableError({ store, problem }, { cause: error })
  }
  checkDirectory(path)
  return 'new'
}

/** Which file is at the path; undefined if there is none. A file that is moved keeps its identity. */
export function identityOf(path: string): string | undefined {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false })
  return file === undefined ? undefined : `${file.dev}:${file.ino}`
}

function checkDirectory(path: string): void {
  const directory = dirname(path)
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new ConfigurationError({
      option: 'path',
      problem: `the directory ${JSON.stringify(directory)} does not exist`,
    })
  }
}
