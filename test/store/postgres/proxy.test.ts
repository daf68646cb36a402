/** A server that ends what it has just begun. */
import { createServer } from 'node:net'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError } from '../../../src/core/errors.ts'
import { postgres } from '../../../src/store/postgres/index.ts'

const SSL_REQUEST = 80_877_103

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`)
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** Accepts each connection and ends it in the same message, as a server does that is shut down at that moment. */
const ACCEPTED_AND_ENDED = Buffer.concat([
  message('R', Buffer.alloc(4)),
  message('Z', Buffer.from('I')),
  message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')),
])

async function endingServer(): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (asked) => {
      if (asked.readInt32BE(4) === SSL_REQUEST) socket.write('N')
      else socket.end(ACCEPTED_AND_ENDED)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `postgres://anybody@127.0.0.1:${address.port}/postgres`
}

it('a connection that is ended as soon as it is made is trouble, and not the end of the process', async () => {
  const url = await endingServer()
  const pool = new pg.Pool({ connectionString: url })
  onTestFinished(() => pool.end())
  for (const store of [postgres(url), postgres(pool)]) {
    for (let n = 0; n < 3; n += 1) await expect(store.open()).rejects.toThrow(StoreUnavailableError)
    await store.close()
  }
})
