/**
 * What happened, in a file outside the store: lines that any process appends, in one order for all. A line is in the
 * file when `note` returns, whatever becomes of the process then.
 */
import { openSync, readFileSync, writeSync } from 'node:fs'

export interface Note {
  /**
   * `body`: a workflow's function was entered. `effect`: a step had its effect. `recorded`: its checkpoint was
   * acknowledged. Others as the test needs them.
   */
  readonly what: string
  /** Of a run, or the idempotency key of a step. */
  readonly key: string
  readonly pid: number
  readonly value: string
}

export class Journal {
  readonly #path: string
  readonly #file: number

  constructor(path: string) {
    this.#path = path
    this.#file = openSync(path, 'a')
  }

  note(what: string, key: string, value = '', pid = process.pid): void {
    // One short write to a file opened for appending never mixes with another.
    writeSync(this.#file, `${[what, key, pid, value].join('\t')}\n`)
  }

  read(): readonly Note[] {
    const lines = readFileSync(this.#path, 'utf8').split('\n')
    return lines.slice(0, -1).map((line) => {
      const [what = '', key = '', pid = '', value = ''] = line.split('\t')
      return { what, key, pid: Number(pid), value }
    })
  }

  /** Notes of one kind, all or those of a key. */
  of(what: string, key?: string): readonly Note[] {
    return this.read().filter((note) => note.what === what && (key === undefined || note.key === key))
  }
}
