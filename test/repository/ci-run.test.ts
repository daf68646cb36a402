import { chmodSync, cpSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Ended, plant, ROOT, run } from './tool.ts'

/** Runs .ci/run with an npm that answers `ci` and `test` as told. */
async function runCi(ci: string, test: string): Promise<Ended> {
  const npm = `#!/usr/bin/env bash\ncase $1 in\n  ci)\n    ${ci}\n    ;;\n  test)\n    ${test}\n    ;;\nesac\n`
  const planted = plant({ 'bin/npm': npm, '.ci/placeholder': '' })
  chmodSync(join(planted, 'bin/npm'), 0o755)
  cpSync(join(ROOT, '.ci/run'), join(planted, '.ci/run'))
  const path = `PATH=${planted}/bin:${process.env['PATH']}`
  return run('env', [path, join(planted, '.ci/run')], { cwd: '/' })
}

const lastLine = ({ output }: Ended): string | undefined => output.trimEnd().split('\n').at(-1)

describe('.ci/run', () => {
  it('ends with the closing line of the tests', async () => {
    const ended = await runCi('echo installed', 'echo 7 passed, 0 failed, 1 skipped; echo more')
    expect(ended.output).toMatch(/^installed\n/)
    expect(lastLine(ended)).toBe('7 passed, 0 failed, 1 skipped')
    expect(ended.status).toBe(0)
  })

  it.each([
    ['a test fails', 'echo 7 passed, 1 failed; exit 1', '7 passed, 1 failed'],
    ['a failure is counted but not told by the exit code', 'echo 7 passed, 10 failed', '7 passed, 10 failed'],
    ['the run ends badly though nothing failed', 'echo 7 passed, 0 failed; exit 3', '7 passed, 0 failed'],
    ['the run breaks off', 'echo starting; exit 137', '0 passed, 1 failed'],
    ['nothing was counted', 'echo all is well', '0 passed, 1 failed'],
  ])('fails when %s', async (_, test, closing) => {
    const ended = await runCi('true', test)
    expect(lastLine(ended)).toBe(closing)
    expect(ended.status).not.toBe(0)
  })

  it('fails when the installation does', async () => {
    const ended = await runCi('exit 1', 'echo 7 passed, 0 failed')
    expect(ended).toEqual({ status: 1, output: '0 passed, 1 failed\n' })
  })
})
