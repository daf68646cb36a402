/** `npm run bench -- sqlite`, `-- queues` or `-- postgres`: prints the figures and appends them, with commit and machine, to bench/RESULTS.md. */
import { execFileSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { cpus } from 'node:os'
import type { Figure } from './figure.ts'

/** Loaded when chosen: the counting of statements in one would slow the others down. */
const SUITES: Readonly<Record<string, () => Promise<readonly Figure[]>>> = {
  sqlite: async () => (await import('./sqlite.ts')).benchSqlite(),
  queues: async () => (await import('./queues.ts')).benchQueues(),
  postgres: async () => (await import('./postgres.ts')).benchPostgres(),
}

const [name = ''] = process.argv.slice(2)
const suite = SUITES[name]
if (suite === undefined) {
  console.error(`usage: npm run bench -- ${Object.keys(SUITES).join('|')}`)
  process.exit(2)
}

const figures = await suite()
const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, ${process.platform}`
const rows = figures.map(
  ({ name, value, baseline, ratio, floor }) => `| ${name} | ${value} | ${baseline} | ${ratio} | ${floor} |`,
)
const report = `
## ${name}, ${new Date().toISOString().slice(0, 16)}, ${commit}

${machine}. Ratios: the median of several rounds, and all of them.

| figure | measured | baseline in the same run | ratio | floor |
| --- | --- | --- | --- | --- |
${rows.join('\n')}
`
console.log(report)
appendFileSync(new URL('RESULTS.md', import.meta.url), report)
