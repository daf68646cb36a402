/** What users get: the build, not the sources through a loader, which adds costs of its own. `npm run bench` builds. */

type Entries = Pick<typeof import('../src/index.ts'), 'Client' | 'Engine' | 'queue' | 'workflow'> &
  Pick<typeof import('../src/store/sqlite/index.ts'), 'sqlite'>

export async function built(): Promise<Entries> {
  const dist = new URL('../dist/', import.meta.url)
  const { Client, Engine, queue, workflow } = await import(new URL('index.js', dist).href)
  const { sqlite } = await import(new URL('store/sqlite/index.js', dist).href)
  return { Client, Engine, queue, workflow, sqlite }
}
