/**
 * The texts of statements: static, with `perdure.` standing for the schema of the store, and prepared by a name that
 * is made from the text. So stores of several schemas and versions of this library may share one pool.
 */
import type { CustomTypesConfig } from 'pg'
import { sha256Hex } from '../../core/ids.ts'

/** Comments, literals and quoted names, in which the word means something else; and the word. */
const TOKENS = /--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|\bperdure\./g
/** A literal that names an object, such as that of `nextval`. */
const NAMING_LITERAL = /^'perdure\.\w+'$/

export interface StatementText {
  readonly text: string
  /** undefined: not prepared by name. */
  readonly name: string | undefined
}

export class Statements {
  readonly #prefix: string
  readonly #prepare: boolean
  readonly #known = new Map<string, StatementText>()

  constructor(schema: string, prepare: boolean) {
    this.#prefix = `${quoted(schema)}.`
    this.#prepare = prepare
  }

  of(sql: string): StatementText {
    const known = this.#known.get(sql)
    if (known !== undefined) return known
    const text = this.render(sql)
    const name = this.#prepare ? `perdure_${sha256Hex(text).slice(0, 24)}` : undefined
    const made = { text, name }
    this.#known.set(sql, made)
    return made
  }

  /** The text with the schema of the store in it. */
  render(sql: string): string {
    return sql.replace(TOKENS, (token) => {
      if (token === 'perdure.') return this.#prefix
      if (!NAMING_LITERAL.test(token)) return token
      const name = this.#prefix.replaceAll("'", "''")
      // What a backslash is in a plain literal depends on `standard_conforming_strings`.
      const opening = name.includes('\\') ? `E'${name.replaceAll('\\', '\\\\')}` : `'${name}`
      return `${opening}${token.slice("'perdure.".length)}`
    })
  }
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

const BOOLEAN = 16
/** Not among those that `pg` has a name for. */
export const TEXT_ARRAY: number = 1009
/** bigint, smallint, integer, float8: all that this library writes are numbers that JavaScript has exactly. */
const NUMBERS: ReadonlySet<number> = new Set([20, 21, 23, 701])
const NUMBER_ARRAYS: ReadonlySet<number> = new Set([1005, 1007, 1016])

/**
 * How columns are read: whatever else is set for the pool, bigint comes as a number and json as text. `arrays` reads a
 * list of texts as PostgreSQL writes it.
 */
export function columnTypes(arrays: (text: string) => unknown): CustomTypesConfig {
  const list = (text: string): readonly unknown[] => {
    const parsed = arrays(text)
    return Array.isArray(parsed) ? parsed : []
  }
  return {
    getTypeParser: (type: number) => {
      if (NUMBERS.has(type)) return Number
      if (type === BOOLEAN) return (text: string) => text === 't'
      if (type === TEXT_ARRAY) return list
      if (NUMBER_ARRAYS.has(type)) return (text: string) => list(text).map((it) => (it === null ? null : Number(it)))
      return (text: string) => text
    },
  }
}
