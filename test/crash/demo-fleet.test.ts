import { join } from 'node:path'
import { expect, it } from 'vitest'
import { expectClean, ROOT, run } from '../repository/tool.ts'

it('the demo of the fleet loses nothing, keeps every limit, and shows who took over what', async () => {
  const ended = await run(join(ROOT, 'node_modules/.bin/tsx'), ['examples/fleet/run.ts'], { timeoutMs: 100_000 })
  expectClean(ended)
  const { output } = ended
  const [, victim = ''] = /kill -9 (worker-\d) {2}in the middle of /.exec(output) ?? []
  expect(victim).not.toBe('')
  expect(output).toMatch(/(page|ada|bob|cyd|dee)-\d+ goes on in worker-\d {2}\d+ ms after the kill/)
  expect(output).not.toMatch(new RegExp(`goes on in ${victim}`))
  expect(output).toMatch(/108 of 108 accepted runs did their work/)
  expect(output.match(/✔/g)).toHaveLength(7)
  expect(output, 'no colours where there is no terminal').not.toContain('\x1b')
})
