/** Looks at the file before SQLite does: opening it as a database could already change it. */
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigurationError, StoreCorruptError, StoreUnavailableError } from '../../core/errors.ts'
import { isErrorWithCode } from './trouble.ts'

const MAGIC = 'SQLite format 3\0'
const HEADER_BYTES = 100

/** Refuses paths that name no file. */
export function checkPath(path: string): void {
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

/** `new`: there is no file yet, or an empty one. Throws if the file is something else than a SQLite database. */
export function inspectFile(path: string, store: string): 'new' | 'database' {
  const header = readHeader(path, store)
  if (header.length === 0) return 'new'
  if (header.length < HEADER_BYTES || header.toString('latin1', 0, MAGIC.length) !== MAGIC) {
    throw new StoreCorruptError({ store, problem: 'the file is not a SQLite database' })
  }
  return 'database'
}

function readHeader(path: string, store: string): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  try {
    const file = openSync(path, 'r')
    try {
      return header.subarray(0, readSync(file, header))
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (isErrorWithCode(error) && error.code === 'ENOENT') {
      checkDirectory(path)
      return Buffer.alloc(0)
    }
    const problem = error instanceof Error ? error.message : String(error)
    throw new StoreUnavailableError({ store, problem }, { cause: error })
  }
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
