import { join } from 'node:path'
import { expect, it } from 'vitest'
import { expectClean, ROOT, run } from '../repository/tool.ts'

it('the demo loses nothing, doubles nothing, keeps its limits, and shows what was replayed and what ran again', async () => {
  const ended = await run(join(ROOT, 'node_modules/.bin/tsx'), ['examples/demo/run.ts'], { timeoutMs: 100_000 })
  expectClean(ended)
  const { output } = ended
  const inFirst = (step: string): RegExp => new RegExp(`worker-1 {2}attempt 1 {2}${step} +ran `)
  expect(output).toMatch(inFirst('charge card'))
  expect(output).toMatch(inFirst('reserve stock'))
  expect(output).toMatch(/worker-2 {2}attempt 2 {2}charge card +replayed /)
  expect(output).toMatch(/worker-2 {2}attempt 2 {2}reserve stock +ran again /)
  expect(output).toMatch(/worker-2 {2}attempt 2 {2}ship +ran /)
  expect(output.match(/ {2}charge card +ran/g)).toHaveLength(1)
  expect(output.match(/kill -9 \d+/g)).toHaveLength(4)
  expect(output).toMatch(/24 runs handed in; no process is there yet that could run one/)
  expect(output).toMatch(/12 of 12 files were converted, 12 published/)
  expect(output).toMatch(/the converter counted 2 files at a time at most/)
  expect(output, 'the first window is full').toMatch(/ {2}0 to 500 ms {2}[12]{5} {2}5 published/)
  expect(output.match(/✔/g)).toHaveLength(12)
  expect(output, 'no colours where there is no terminal').not.toContain('\x1b')
})
