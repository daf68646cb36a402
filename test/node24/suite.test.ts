/** Node 24 brings SQLite with it: there the store, and engines on a file, are tested on that driver. */
import { expect, it } from 'vitest'
import { run } from '../repository/tool.ts'

it('the store and engines work on Node 24, on its own SQLite', async () => {
  const suites = ['test/store/sqlite', 'test/api/engine/recovery.test.ts', 'test/api/engine/start.test.ts']
  const args = ['run', '-s', 'test:node24', '--', '--project', 'store', '--project', 'unit', ...suites]
  const { status, output } = await run('npm', args, { timeoutMs: 290_000 })
  expect(output).toMatch(/\n\d+ passed, 0 failed/)
  expect(status).toBe(0)
})
