/** A way to the server that can be made to fail as networks do. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export class Relay {
  readonly url: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #silent = false
  #cutAfter: string | undefined

  private constructor(server: Server, url: string) {
    this.#server = server
    this.url = url
  }

  /** Closed when the test ends. */
  static async open(to: string): Promise<Relay> {
    const target = new URL(to)
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const url = new URL(to)
    url.host = `127.0.0.1:${address.port}`
    const relay = new Relay(server, url.href)
    server.on('connection', (socket) => relay.#join(socket, connect(Number(target.port), target.hostname)))
    onTestFinished(() => relay.close())
    return relay
  }

  /**
   * From now on nothing gets through, and nobody is told: the connections are half open. What was lost is lost, so one
   * that had anything to say meanwhile stays silent for ever.
   */
  silence(): void {
    this.#silent = true
  }

  heal(): void {
    this.#silent = false
  }

  /** What holds `word` next reaches the server, whose answer reaches nobody. */
  cutAfterNext(word: string): void {
    this.#cutAfter = word
  }

  /** True until it has come to that. */
  get isToCut(): boolean {
    return this.#cutAfter !== undefined
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.cut()
    this.#server.close()
  }

  #join(client: Socket, server: Socket): void {
    let isCut = false
    let isSilent = false
    const isLost = (): boolean => {
      isSilent ||= this.#silent
      return isSilent
    }
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    client.on('data', (chunk) => {
      if (isLost()) return
      if (this.#cutAfter !== undefined && chunk.includes(this.#cutAfter)) {
        this.#cutAfter = undefined
        isCut = true
      }
      server.write(chunk)
    })
    server.on('data', (chunk) => {
      if (isLost()) return
      if (isCut) client.destroy()
      else client.write(chunk)
    })
  }
}
