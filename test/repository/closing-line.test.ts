import { describe, expect, it } from 'vitest'
import { closingLine } from '../../scripts/closing-line.ts'
import { type Ended, plant, ROOT, run } from './tool.ts'

const VITEST = `${ROOT}/node_modules/vitest/vitest.mjs`

const CONFIG = `
import { defineConfig } from '${ROOT}/node_modules/vitest/dist/config.js'
import { ClosingLineReporter } from '${ROOT}/scripts/closing-line.ts'
export default defineConfig({
  test: { globals: true, reporters: ['default', new ClosingLineReporter()], ...PLANTED },
})
`

function suite(files: Readonly<Record<string, string>>, options = '{}'): Promise<Ended> {
  const config = `${CONFIG.replace('PLANTED', options)}`
  const planted = plant({ 'vitest.config.ts': config, 'package.json': '{ "type": "module" }', ...files })
  return run(process.execPath, [VITEST, 'run', '--root', planted], { cwd: planted })
}

const lastLine = ({ output }: Ended): string | undefined => output.trimEnd().split('\n').at(-1)

describe('the closing line', () => {
  it('names skipped tests only when there are any', () => {
    expect(closingLine({ passed: 3, failed: 0, skipped: 0 })).toBe('3 passed, 0 failed')
    expect(closingLine({ passed: 0, failed: 1, skipped: 2 })).toBe('0 passed, 1 failed, 2 skipped')
  })

  it('is the last line and counts tests', async () => {
    const tests = "it('a', () => {}); describe('s', () => { it('b', () => {}); it.skip('c', () => {}); it.todo('d') })"
    const ended = await suite({ 'a.test.js': tests, 'b.test.js': "it('e', () => {})" })
    expect(lastLine(ended), ended.output).toBe('3 passed, 0 failed, 2 skipped')
    expect(ended.status).toBe(0)
  })

  it('counts failures', async () => {
    const ended = await suite({ 'a.test.js': "it('a', () => {}); it('b', () => { throw new Error('b') })" })
    expect(lastLine(ended), ended.output).toBe('1 passed, 1 failed')
    expect(ended.status).toBe(1)
  })

  it('counts what kept tests from running as a failure', async () => {
    const hook = "describe('s', () => { beforeAll(() => { throw new Error('hook') }); it('a', () => {}) })"
    const rejection = "it('c', () => {}); Promise.reject(new Error('nobody handles this'))"
    const ended = await suite({
      'loads.test.js': "it('b', () => {})",
      'broken.test.js': "throw new Error('broken')",
      'hook.test.js': hook,
      'rejects.test.js': rejection,
    })
    expect(lastLine(ended), ended.output).toBe('2 passed, 3 failed, 1 skipped')
    expect(ended.status).toBe(1)
  })

  it('counts a run without tests as none passed', async () => {
    const ended = await suite({})
    expect(lastLine(ended), ended.output).toBe('0 passed, 0 failed')
    expect(ended.status).toBe(1)
  })
})
