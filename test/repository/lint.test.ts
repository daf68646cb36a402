import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { expectClean, plant, ROOT, tool } from './tool.ts'

describe('the repository', () => {
  it('has no type error', async () => {
    expectClean(await tool('tsc', ['-p', '.']))
  })

  it('is formatted and free of lint', async () => {
    expectClean(await tool('biome', ['check', '--error-on-warnings', '--max-diagnostics=50']))
  })

  it('leaves no promise floating and no switch incomplete', async () => {
    expectClean(await tool('oxlint', []))
  })

  it('has no unused file and no unused or undeclared dependency', async () => {
    expectClean(await tool('knip', ['--no-progress', '--no-config-hints']))
  })
})

/** Rules, each with a file that breaks it. */
const REFUSED_BY_BIOME: Readonly<Record<string, string>> = {
  noExplicitAny: 'export const x = (y: any): number => y\n',
  noNonNullAssertion: 'export const x = (y: number | null): number => y!\n',
  noDefaultExport: 'export default 1\n',
  noRestrictedGlobals: 'export const x = (): unknown => setTimeout(() => {}, 1)\n',
  noRestrictedImports: "export { randomUUID } from 'node:crypto'\n",
  useImportExtensions: "export { x } from './noDefaultExport'\n",
  noConsole: 'console.log(1)\n',
  noExcessiveLinesPerFunction: `export function x(y: number[]): void {\n${'  y.push(1)\n'.repeat(71)}}\n`,
  noExcessiveLinesPerFile: Array.from({ length: 401 }, (_, n) => `export const x${n} = ${n}\n`).join(''),
  format: 'export const x = 1;\n',
}

const REFUSED_BY_OXLINT: Readonly<Record<string, string>> = {
  'no-floating-promises': 'export const x = (): void => {\n  Promise.resolve(1)\n}\n',
  'no-misused-promises': 'export const x = (): void => [1].forEach(async () => {})\n',
  'await-thenable': 'export const x = async (): Promise<number> => await 1\n',
  'switch-exhaustiveness-check':
    "export function x(y: 'a' | 'b'): void {\n  switch (y) {\n    case 'a':\n      break\n  }\n}\n",
}

describe('the checks', () => {
  const sources = (rules: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(rules).map(([rule, text]) => [`src/${rule}.ts`, text]))

  it.each(Object.keys(REFUSED_BY_BIOME))('refuse %s', async (rule) => {
    const config = { 'biome.json': readFileSync(join(ROOT, 'biome.json'), 'utf8'), '.gitignore': 'dist/\n' }
    const planted = plant({ ...config, ...sources(REFUSED_BY_BIOME) })
    const { status, output } = await tool('biome', ['check', `src/${rule}.ts`], planted)
    expect(output).toMatch(new RegExp(`^src/${rule}\\.ts.* (lint/\\w+/)?${rule} `, 'm'))
    expect(status).toBe(1)
  })

  it('refuse what the type-aware rules forbid', async () => {
    const tsconfig = '{ "compilerOptions": { "strict": true, "target": "es2023", "module": "nodenext" } }'
    const planted = plant({
      ...sources(REFUSED_BY_OXLINT),
      'tsconfig.json': tsconfig,
      'package.json': '{ "type": "module" }',
    })
    const { output } = await tool('oxlint', ['-c', join(ROOT, '.oxlintrc.json')], planted)
    const missed = Object.keys(REFUSED_BY_OXLINT).filter((rule) => !output.includes(`typescript(${rule})`))
    expect(missed, output).toEqual([])
  })
})
