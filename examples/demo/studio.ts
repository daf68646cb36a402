/**
 * A converter of files and a publisher, behind an HTTP server in the process of the demo. The converter counts for itself
 * how many files it is given at a time; nothing of that is in the store.
 */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Studio {
  convert(file: string): Promise<string>
  publish(file: string): Promise<string>
}

export class StudioServer {
  running = 0
  mostRunning = 0
  /** Called when a file has been converted. */
  onConverted: (file: string) => void = () => {}
  readonly #server = createServer((request, response) => {
    void text(request).then((file) => {
      if (request.url === '/convert') this.#convert(file, (answer) => response.end(answer))
      else response.end(`${file} is published`)
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

  #convert(file: string, done: (converted: string) => void): void {
    this.running += 1
    this.mostRunning = Math.max(this.mostRunning, this.running)
    const convert = (): void => {
      this.onConverted(file)
      this.running -= 1
      done(`${file}.mp4`)
    }
    setTimeout(convert, 80 + Math.random() * 80)
  }
}

/** The client that a worker's steps use. */
export function studioAt(url: string): Studio {
  const post = async (path: string, file: string): Promise<string> =>
    (await fetch(`${url}${path}`, { method: 'POST', body: file })).text()
  return { convert: (file) => post('/convert', file), publish: (file) => post('/publish', file) }
}
