/**
 * A pooler in transaction mode, as PgBouncer is one: each transaction of a client goes to the server connection that was
 * idle for longest, so that hardly two in a row share one. Whatever a client leaves in a session is lost to it.
 */
import { createServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { onTestFinished } from 'vitest'

const SSL_REQUEST = 80_877_103
/** Messages that the server answers with `ReadyForQuery`. */
const ANSWERED: ReadonlySet<string> = new Set(['Q', 'S', 'F'])
const READY = 'Z'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)

/** A connection to the server, logged in; the driver has let go of its socket. */
class Backend {
  readonly #socket: Socket
  readonly #messages = new Messages((message) => this.onMessage(message))
  onMessage: (message: Buffer) => void = () => {}

  constructor(socket: Socket) {
    this.#socket = socket
    socket.removeAllListeners('data')
    socket.on('data', (chunk) => this.#messages.add(chunk))
  }

  write(message: Buffer): void {
    this.#socket.write(message)
  }
}

export class Pooler {
  readonly url: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #clients: readonly pg.Client[]
  readonly #idle: Backend[]
  readonly #waiting: ((backend: Backend) => void)[] = []
  /** How many transactions went through. */
  transactions = 0

  private constructor(url: string, server: Server, clients: readonly pg.Client[]) {
    this.url = url
    this.#server = server
    this.#clients = clients
    this.#idle = clients.map(({ connection }) => {
      if (!('stream' in connection)) throw new Error('the driver has no socket')
      return new Backend(connection.stream as Socket)
    })
  }

  /** Closed when the test ends. */
  static async open(to: string, connections = 3): Promise<Pooler> {
    const clients = Array.from({ length: connections }, () => new pg.Client({ connectionString: to }))
    for (const client of clients) {
      client.on('error', () => {})
      await client.connect()
    }
    const server = createServer({ noDelay: true })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const pooler = new Pooler(`postgres://anybody@127.0.0.1:${address.port}/postgres`, server, clients)
    server.on('connection', (socket) => pooler.#join(socket))
    onTestFinished(() => pooler.close())
    return pooler
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    for (const { connection } of this.#clients) connection.stream.destroy()
  }

  #join(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    const session = new ClientSession(socket, {
      take: (use) => this.#take(use),
      give: (backend) => this.#give(backend),
    })
    socket.on('close', () => {
      this.#sockets.delete(socket)
      session.leave()
    })
    socket.once('data', (chunk) => {
      if (chunk.readInt32BE(4) === SSL_REQUEST) throw new Error('the pooler has no TLS')
      session.welcome()
      socket.on('data', (more) => session.add(more))
    })
  }

  #take(use: (backend: Backend) => void): void {
    const backend = this.#idle.shift()
    if (backend === undefined) this.#waiting.push(use)
    else use(backend)
  }

  #give(backend: Backend): void {
    this.transactions += 1
    backend.onMessage = () => {}
    const next = this.#waiting.shift()
    if (next === undefined) this.#idle.push(backend)
    else next(backend)
  }
}

interface Backends {
  readonly take: (use: (backend: Backend) => void) => void
  readonly give: (backend: Backend) => void
}

class ClientSession {
  readonly #socket: Socket
  readonly #backends: Backends
  readonly #messages = new Messages((message) => this.#ask(message))
  #backend: Backend | 'awaited' | undefined
  #held: Buffer[] = []
  #unanswered = 0
  #gone = false

  constructor(socket: Socket, backends: Backends) {
    this.#socket = socket
    this.#backends = backends
  }

  welcome(): void {
    this.#socket.write(
      Buffer.concat([message('R', Buffer.alloc(4)), message('K', Buffer.alloc(8)), message('Z', Buffer.from('I'))]),
    )
  }

  add(chunk: Buffer): void {
    this.#messages.add(chunk)
  }

  /** The client is gone, in the middle of a transaction maybe: that is rolled back. */
  leave(): void {
    this.#gone = true
    if (this.#backend instanceof Backend) this.#rollBack(this.#backend)
  }

  #rollBack(backend: Backend): void {
    this.#unanswered += 2
    backend.write(Buffer.concat([message('S', Buffer.alloc(0)), message('Q', Buffer.from('ROLLBACK\0'))]))
  }

  #ask(asked: Buffer): void {
    const type = String.fromCharCode(asked[0] ?? 0)
    // The client says goodbye; the server connection stays.
    if (type === 'X') return
    if (ANSWERED.has(type)) this.#unanswered += 1
    if (this.#backend instanceof Backend) {
      this.#backend.write(asked)
      return
    }
    this.#held.push(asked)
    if (this.#backend === 'awaited') return
    this.#backend = 'awaited'
    this.#backends.take((backend) => this.#begin(backend))
  }

  #begin(backend: Backend): void {
    if (this.#gone) {
      this.#backends.give(backend)
      return
    }
    this.#backend = backend
    backend.onMessage = (answer) => this.#answer(backend, answer)
    const held = this.#held
    this.#held = []
    for (const asked of held) backend.write(asked)
  }

  #answer(backend: Backend, answer: Buffer): void {
    if (!this.#gone) this.#socket.write(answer)
    if (answer[0] !== READY) return
    this.#unanswered -= 1
    if (answer[5] !== IDLE || this.#unanswered > 0) return
    this.#backend = undefined
    this.#backends.give(backend)
  }
}

/** Cuts what comes into messages: a byte that says which, and a length. */
class Messages {
  readonly #onMessage: (message: Buffer) => void
  #rest: Buffer = Buffer.alloc(0)

  constructor(onMessage: (message: Buffer) => void) {
    this.#onMessage = onMessage
  }

  add(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 5) {
      const length = 1 + this.#rest.readInt32BE(1)
      if (this.#rest.length < length) return
      const message = this.#rest.subarray(0, length)
      this.#rest = this.#rest.subarray(length)
      this.#onMessage(message)
    }
  }
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`)
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}
