import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { expectClean, plant, ROOT, tool } from './tool.ts'

const CONFIG = ['--config', join(ROOT, '.dependency-cruiser.mjs')]
const X = 'export type X = 1\n'

/** A repository of one file for each place that may be imported from. */
const PLACES: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "module", "dependencies": { "seroval": "1" }, "devDependencies": { "zod": "4" } }',
  'tsconfig.json': '{}',
  'node_modules/seroval/package.json': '{ "name": "seroval", "main": "index.js" }',
  'node_modules/seroval/index.js': 'exports.X = 1\n',
  'node_modules/zod/package.json': '{ "name": "zod", "main": "index.js" }',
  'node_modules/zod/index.js': 'exports.X = 1\n',
  'src/core/clock.ts': X,
  'src/store/contract.ts': X,
  'src/store/conformance/index.ts': X,
  'src/store/memory/index.ts': X,
  'src/store/sqlite/index.ts': X,
  'src/runtime/executor.ts': X,
  'src/api/engine.ts': X,
  'src/testing/index.ts': X,
  'test/x.ts': X,
}

/** Rule, importing file, what it may not import. */
const FORBIDDEN: readonly (readonly [rule: string, from: string, to: string])[] = [
  ['layer-core', 'src/core/a.ts', '../store/contract.ts'],
  ['layer-store', 'src/store/a.ts', '../runtime/executor.ts'],
  ['layer-store', 'src/store/b.ts', './memory/index.ts'],
  ['layer-conformance', 'src/store/conformance/a.ts', '../sqlite/index.ts'],
  ['layer-memory', 'src/store/memory/a.ts', '../sqlite/index.ts'],
  ['layer-sqlite', 'src/store/sqlite/a.ts', '../memory/index.ts'],
  ['layer-runtime', 'src/runtime/a.ts', '../api/engine.ts'],
  ['layer-runtime', 'src/runtime/b.ts', '../store/memory/index.ts'],
  ['layer-runtime', 'src/runtime/c.ts', '../store/conformance/index.ts'],
  ['layer-api', 'src/api/a.ts', '../store/sqlite/index.ts'],
  ['layer-api', 'src/api/b.ts', '../testing/index.ts'],
  ['layer-observe', 'src/observe/a.ts', '../store/contract.ts'],
  ['layer-entry', 'src/index.ts', './testing/index.ts'],
  ['src-stands-alone', 'src/api/c.ts', '../../test/x.ts'],
  ['examples-are-users', 'examples/a.ts', '../src/api/engine.ts'],
  ['home-of-seroval', 'src/core/b.ts', 'seroval'],
  ['declared-dependencies', 'src/core/c.ts', 'zod'],
  ['resolvable', 'src/core/d.ts', './nowhere.ts'],
  ['no-cycles', 'src/core/e.ts', './f.ts'],
]

describe('the layers', () => {
  it('are kept by every file', async () => {
    expectClean(await tool('depcruise', [...CONFIG, 'src', 'test', 'scripts', 'examples', 'bench']))
  })

  it('refuse what the design does not draw', async () => {
    const violations = FORBIDDEN.map(([, from, to]) => [from, `export type { X } from '${to}'\n`])
    const back = { 'src/core/f.ts': "export type { X } from './e.ts'\n" }
    const planted = plant({ ...PLACES, ...Object.fromEntries(violations), ...back })
    const { output } = await tool('depcruise', [...CONFIG, 'src', 'examples'], planted)
    const missed = FORBIDDEN.filter(([rule, from]) => !output.includes(`${rule}: ${from}`))
    expect(missed, output).toEqual([])
  })

  it('let the conformance kit name the types of its tools, no more', async () => {
    const types = plant({ ...PLACES, 'src/store/conformance/a.ts': "export type { X } from 'zod'\n" })
    expectClean(await tool('depcruise', [...CONFIG, 'src'], types))
    const values = plant({ ...PLACES, 'src/store/conformance/a.ts': "export { X } from 'zod'\n" })
    const { output } = await tool('depcruise', [...CONFIG, 'src'], values)
    expect(output).toContain('kit-is-given-its-tools: src/store/conformance/a.ts')
  })

  it('allow what it draws', async () => {
    const below = ['../core/clock.ts', '../store/contract.ts', '../runtime/executor.ts']
    const uses = below.map((path, n) => `export type { X as X${n} } from '${path}'\n`).join('')
    const planted = plant({ ...PLACES, 'src/api/a.ts': uses, 'src/testing/a.ts': `${uses}${X}` })
    expectClean(await tool('depcruise', [...CONFIG, 'src'], planted))
  })
})
