/**
 * What is published works: the tarball is built, looked over by publint and attw, installed into an empty project
 * (dependencies from the registry or npm's cache), and used from there as ESM and as CommonJS, typed and at run time.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectClean, ROOT, run, tool } from '../repository/tool.ts'

const directory = mkdtempSync(join(tmpdir(), 'perdure-package-'))
const consumer = join(directory, 'consumer')
const installed = join(consumer, 'node_modules/perdure')
let tarball = ''

const USE = `
const greet = workflow('greet', async (ctx, name: string) => ctx.step('compose', async () => \`hello, \${name}\`))

async function main(): Promise<void> {
  const engine = new Engine({ store: memory(), definitions: [greet] })
  await engine.launch()
  const run = await engine.start(greet, 'you')
  const greeting: string = await run.result()
  // @ts-expect-error: the input is a string
  const refused = () => engine.start(greet, 1)
  await engine.shutdown()
  console.log(greeting, typeof sqlite, typeof postgres, typeof MockClock, typeof refused)
}

main()
`
const ESM = `import { Engine, workflow } from 'perdure'
import { memory } from 'perdure/memory'
import { postgres } from 'perdure/postgres'
import { sqlite } from 'perdure/sqlite'
import { MockClock } from 'perdure/testing'
${USE}`
const COMMONJS = `import perdure = require('perdure')
import memoryEntry = require('perdure/memory')
import postgresEntry = require('perdure/postgres')
import sqliteEntry = require('perdure/sqlite')
import testing = require('perdure/testing')
const { Engine, workflow } = perdure
const { memory } = memoryEntry
const { postgres } = postgresEntry
const { sqlite } = sqliteEntry
const { MockClock } = testing
${USE}`
const PRINTED = 'hello, you function function function function\n'

/** What the store in PostgreSQL takes is typed by @types/pg, which needs those of Node. */
const LOCAL = ESM.replace(/.*perdure\/postgres.*\n/, '').replace(' typeof postgres,', '')

const WITHOUT_DRIVER = `import { Engine } from 'perdure'
import { sqlite } from 'perdure/sqlite'
try {
  const engine = new Engine({ store: sqlite('app.db'), definitions: [] })
  await engine.launch()
  console.log('launched')
} catch (error) {
  console.log(error.code, error.message.includes('better-sqlite3'))
}
`

const WITHOUT_PG = `import { Client } from 'perdure'
import { postgres } from 'perdure/postgres'
try {
  await new Client({ store: postgres('postgres://app:secret@db/app') }).start('greet')
} catch (error) {
  console.log(error.code, error.message)
}
`

const NODE_TYPES = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')]

function typeCheck(
  moduleOptions: readonly string[],
  files: readonly string[],
  emit: boolean,
  types: readonly string[] = NODE_TYPES,
): ReturnType<typeof tool> {
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--skipLibCheck', 'false']
  const output = emit ? ['--outDir', 'out', '--rootDir', '.'] : ['--noEmit']
  return tool('tsc', [...moduleOptions, ...types, ...strict, ...output, ...files], consumer)
}

beforeAll(async () => {
  expectClean(await run('npm', ['pack', '--pack-destination', directory]))
  tarball = join(directory, readdirSync(directory).find((name) => name.endsWith('.tgz')) ?? 'no tarball')
  mkdirSync(consumer)
  writeFileSync(join(consumer, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }')
  writeFileSync(join(consumer, 'esm.ts'), ESM)
  writeFileSync(join(consumer, 'local.ts'), LOCAL)
  writeFileSync(join(consumer, 'commonjs.cts'), COMMONJS)
  writeFileSync(join(consumer, 'without-driver.js'), WITHOUT_DRIVER)
  writeFileSync(join(consumer, 'without-pg.js'), WITHOUT_PG)
  expectClean(await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball], { cwd: consumer }))
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe('the package', () => {
  it('has no fault that publint knows', async () => {
    expectClean(await tool('publint', ['--strict', tarball]))
  })

  it('resolves with its types in every mode of ESM', async () => {
    expectClean(await tool('attw', [tarball, '--profile', 'esm-only']))
  })

  it('holds what is needed at run time and nothing of the repository', () => {
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' })
    const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    expect(files.filter((path) => !/^(dist|package\.json|README\.md|LICENSE|CHANGELOG\.md)/.test(path))).toEqual([])
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'CHANGELOG.md']))
    const needed = sources.filter((path) => /\.(sql|js)$/.test(path)).map((path) => join('dist', path))
    expect(files).toEqual(expect.arrayContaining(needed))
    const maps = files.filter((path) => path.endsWith('.js.map'))
    expect(maps.every((path) => readFileSync(join(installed, path), 'utf8').includes('"sourcesContent"'))).toBe(true)
  })

  it('brings few dependencies and no driver', () => {
    const names = readdirSync(join(consumer, 'node_modules')).filter((name) => !name.startsWith('.'))
    expect(names.sort()).toEqual(['@standard-schema', 'ms', 'perdure', 'seroval'])
  })

  it('type-checks and runs as ESM and as CommonJS under nodenext', async () => {
    expectClean(await typeCheck(['--module', 'nodenext'], ['esm.ts', 'commonjs.cts'], true))
    const esm = await run(process.execPath, ['out/esm.js'], { cwd: consumer })
    expect(esm).toEqual({ status: 0, output: PRINTED })
    const commonjs = await run(process.execPath, ['out/commonjs.cjs'], { cwd: consumer })
    expect(commonjs).toEqual({ status: 0, output: PRINTED })
  })

  it('type-checks for bundlers', async () => {
    expectClean(await typeCheck(['--module', 'esnext', '--moduleResolution', 'bundler'], ['esm.ts'], false))
  })

  it('type-checks for a target without disposal, and without the types of Node', async () => {
    expectClean(await typeCheck(['--module', 'nodenext'], ['local.ts'], false, []))
  })

  it('lets nobody import what is not listed', () => {
    const require = createRequire(join(consumer, 'esm.ts'))
    expect(existsSync(join(installed, 'dist/core/clock.js'))).toBe(true)
    expect(() => require.resolve('perdure/dist/core/clock.js')).toThrow(/not defined by "exports"/)
    expect(require('perdure/package.json')).toMatchObject({ name: 'perdure' })
  })

  it.skipIf(isBuiltin('node:sqlite'))('says which driver to install when there is none', async () => {
    const { output } = await run(process.execPath, ['without-driver.js'], { cwd: consumer })
    expect(output).toBe('MISSING_DRIVER true\n')
  })

  it('says that pg is missing when the store in PostgreSQL is used without it', async () => {
    const { output } = await run(process.execPath, ['without-pg.js'], { cwd: consumer })
    expect(output).toBe(
      'MISSING_DRIVER The store postgres db/app needs a driver that is not installed. Run: npm install pg@8.\n',
    )
  })
})
