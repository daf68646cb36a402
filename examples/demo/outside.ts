/**
 * The world outside: card payments, a warehouse, a carrier, mail. One HTTP server plays them all, in the process of
 * the demo, which is never killed. Like real services of that kind it honours idempotency keys: a call with a key it
 * knows has no second effect and is answered as the first was.
 *
 * Its log is what the demo counts in the end; nothing of it is in the workflows' store.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { Service, Shop } from './order.ts'

/** A call as the service saw it. `recognised`: its key was known, so it had no effect. */
export interface ServiceCall {
  readonly worker: string
  readonly service: Service
  readonly key: string
  readonly reference: string
  readonly recognised: boolean
}

interface Request {
  readonly worker: string
  readonly service: Service
  readonly key: string
}

export class OutsideWorld {
  readonly log: ServiceCall[] = []
  /** Called when a call has had its effect and has not been answered yet. */
  onCall: (call: ServiceCall) => void = () => {}
  readonly #references = new Map<string, string>()
  readonly #latencyMs: number
  readonly #server = createServer((request, response) => {
    void textOf(request).then((text) => {
      const { reference } = this.#serve(JSON.parse(text))
      setTimeout(() => response.end(reference), this.#latencyMs * (0.5 + Math.random()))
    })
  })

  constructor(options: { readonly latencyMs: number }) {
    this.#latencyMs = options.latencyMs
  }

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

  #serve({ worker, service, key }: Request): ServiceCall {
    const known = this.#references.get(key)
    const reference = known ?? `${service.replace(' ', '-')}-${this.#references.size + 1}`
    this.#references.set(key, reference)
    const call: ServiceCall = { worker, service, key, reference, recognised: known !== undefined }
    this.log.push(call)
    this.onCall(call)
    return call
  }
}

/** The client that a worker's steps use. */
export function shopAt(url: string, worker: string): Shop {
  return {
    call: async (service, key, details) => {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify({ worker, service, key, details }) })
      return response.text()
    },
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
