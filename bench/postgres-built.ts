/** What users get of the store for PostgreSQL: the build. */
type Entry = Pick<typeof import('../src/store/postgres/index.ts'), 'postgres'>

export async function builtPostgres(): Promise<Entry> {
  const { postgres } = await import(new URL('../dist/store/postgres/index.js', import.meta.url).href)
  return { postgres }
}
