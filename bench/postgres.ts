/**
 * The engine on PostgreSQL, against the bare driver in the same run on the same server, whose commits are synced. The
 * server shares the processors with the process that it serves.
 */
import type { Figure } from './figure.ts'
import { draining, idling, toStartElsewhere } from './postgres-queues.ts'
import { benchServer } from './postgres-server.ts'
import { enqueueing, steps } from './postgres-starts.ts'
import { rawPostgres } from './raw-postgres.ts'

export async function benchPostgres(): Promise<readonly Figure[]> {
  const server = await benchServer()
  const raw = await rawPostgres(server.url)
  try {
    const figures = [
      ...(await draining(server, raw)),
      ...(await enqueueing(server.url, raw)),
      ...(await steps(server.url)),
      await toStartElsewhere(server.url),
    ]
    await raw.close()
    return [...figures, await idling(server)]
  } finally {
    await server.stop()
  }
}
