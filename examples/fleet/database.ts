/** The database of the demo, as a process beside it (server.ts). */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface DemoDatabase {
  readonly url: string
  /** Resolves when it is stopped and its files are gone. */
  stop(): Promise<void>
}

export async function startDatabase(): Promise<DemoDatabase> {
  const server = spawn(process.execPath, ['--import', 'tsx', fileURLToPath(new URL('./server.ts', import.meta.url))], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // A Ctrl-C at the terminal is for the demo, and ends the server by way of it.
    detached: true,
  })
  const gone = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  const url = await new Promise<string>((resolve, reject) => {
    server.once('message', (message) => resolve(String(message)))
    server.once('error', reject)
    void gone.then(() => reject(new Error('there is no PostgreSQL for the demo')))
  })
  return {
    url,
    stop: async () => {
      if (server.connected) server.disconnect()
      await gone
    },
  }
}
