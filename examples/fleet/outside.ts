/**
 * What the work is done to, and a journal of it: an HTTP server in the process of the demo, which is never killed. It
 * writes down when each piece of work began and ended, and for whom. The verdicts come from here; nothing of it is in
 * the database.
 */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'

export interface Piece {
  readonly queue: string
  readonly run: string
  /** The customer; '' where work has none. */
  readonly key: string
}

export interface Entry extends Piece {
  readonly worker: string
  readonly beganAt: number
  /** undefined: it has not ended yet, or its worker was killed. */
  endedAt: number | undefined
  /** When its worker was killed, with this in hand. */
  killedAt: number | undefined
  /** How many of the same queue and key were under way when it had begun, this one included. */
  readonly atATime: number
}

/** What a worker's steps use. */
export interface Outside {
  /** Makes the connection. */
  greet(): Promise<void>
  work(piece: Piece & { readonly ms: number }): Promise<void>
}

export class Journal {
  readonly entries: Entry[] = []
  onBegin: (entry: Entry) => void = () => {}
  readonly #dead = new Map<string, number>()
  readonly #server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.url === '/begin') this.#begin(JSON.parse(body))
      if (request.url === '/end') this.#end(JSON.parse(body))
      response.end()
    })
  })

  /** Gives its address. */
  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the server has no port')
    return `http://127.0.0.1:${address.port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** A worker is killed at this moment. What it had in hand, nobody works on. */
  killed(worker: string): readonly Entry[] {
    const at = Date.now()
    this.#dead.set(worker, at)
    const inHand = this.underWay().filter((entry) => entry.worker === worker)
    for (const entry of inHand) entry.killedAt = at
    return inHand
  }

  underWay(): readonly Entry[] {
    return this.entries.filter(({ endedAt, killedAt }) => endedAt === undefined && killedAt === undefined)
  }

  #begin({ worker, queue, run, key }: Piece & { readonly worker: string }): void {
    const others = this.underWay().filter((entry) => entry.queue === queue && entry.key === key)
    const entry: Entry = {
      ...{ worker, queue, run, key, beganAt: Date.now(), endedAt: undefined },
      // A message that was on its way when its sender was killed.
      killedAt: this.#dead.get(worker),
      atATime: others.length + 1,
    }
    this.entries.push(entry)
    this.onBegin(entry)
  }

  #end({ worker, run }: { readonly worker: string; readonly run: string }): void {
    const entry = this.entries.findLast((one) => one.run === run && one.worker === worker)
    if (entry !== undefined) entry.endedAt = Date.now()
  }
}

export function outsideAt(url: string, worker: string): Outside {
  const tell = async (what: 'hello' | 'begin' | 'end', piece?: Piece): Promise<void> => {
    const response = await fetch(`${url}/${what}`, { method: 'POST', body: JSON.stringify({ ...piece, worker }) })
    await response.text()
  }
  return {
    greet: () => tell('hello'),
    work: async ({ ms, ...piece }) => {
      await tell('begin', piece)
      await setTimeout(ms)
      await tell('end', piece)
    },
  }
}
