/**
 * `npm run test:node24 -- <arguments of vitest>`: the suite on Node 24, where SQLite comes with Node. The binary is
 * installed beside this file when it is first needed, apart from the package's own dependencies: in their folder it
 * would take the place of the one that npm runs every script with.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const directory = join(import.meta.dirname, 'node24')
const node = join(directory, 'node_modules/node/bin/node')
const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs')

if (!existsSync(node)) {
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: directory, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
const { status } = spawnSync(node, [vitest, 'run', ...process.argv.slice(2)], { stdio: 'inherit' })
process.exit(status ?? 1)
