/** One PostgreSQL for a whole run of the tests, started when the first test asks for it. */
import { createServer, type Server, type Socket } from 'node:net'
import { BROKER, startServer, type TestServer } from './server.ts'

let broker: Server | undefined
let server: Promise<TestServer> | undefined

/** Vitest calls both once for each project. */
export async function setup(): Promise<void> {
  if (broker !== undefined) return
  const listening = createServer((socket) => void answer(socket))
  broker = listening
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const address = listening.address()
  if (address === null || typeof address === 'string') throw new Error('the broker has no port')
  process.env[BROKER] = String(address.port)
}

export async function teardown(): Promise<void> {
  broker?.close()
  const started = await server?.catch(() => undefined)
  server = undefined
  await started?.stop()
}

async function answer(socket: Socket): Promise<void> {
  socket.on('error', () => {})
  try {
    server ??= startServer()
    socket.end((await server).url)
  } catch (error) {
    socket.end(String(error))
  }
}
