/**
 * `npm run build`: makes dist/ anew from src/, file by file, so that stack traces read like the sources.
 *
 * tsc makes the modules and their declarations; what is not TypeScript but needed at run time (SQL, the
 * plain-JavaScript lease thread) is copied to the same place. Exits non-zero, leaving no dist/, if a file has an error.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const COPIED: ReadonlySet<string> = new Set(['.js', '.sql'])

rmSync(dist, { recursive: true, force: true })
const tsc = join(root, 'node_modules/typescript/bin/tsc')
const compiled = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
if (compiled.status === 0) {
  const copied = (path: string): boolean => statSync(path).isDirectory() || COPIED.has(extname(path))
  cpSync(join(root, 'src'), dist, { recursive: true, filter: copied })
} else {
  rmSync(dist, { recursive: true, force: true })
  process.exitCode = 1
}
