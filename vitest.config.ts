/**
 * One runner for everything `npm test` checks. The projects run in three groups, one after the other: first what needs
 * nothing but a processor, then the checks of the repository (types, lint, layers, package, documents), last the
 * tests with real processes, serially, so that no other load disturbs their timing.
 */
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { ClosingLineReporter } from './scripts/closing-line.ts'

const at = (path: string): string => join(import.meta.dirname, path)

export default defineConfig({
  resolve: {
    alias: [
      { find: /^perdure$/, replacement: at('src/index.ts') },
      { find: /^perdure\/testing$/, replacement: at('src/testing/index.ts') },
      { find: /^perdure\/(memory|sqlite|postgres)$/, replacement: at('src/store/$1/index.ts') },
    ],
  },
  test: {
    reporters: ['default', new ClosingLineReporter()],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globalSetup: [at('test/store/postgres/global.ts')],
    coverage: { include: ['src/**/*.ts'] },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/{store,crash,repository,package,docs,node24}/**'],
        },
      },
      {
        extends: true,
        test: { name: 'store', include: ['test/store/**/*.test.ts'] },
      },
      {
        extends: true,
        test: {
          name: 'repository',
          include: ['test/{repository,package,docs,node24}/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'crash',
          include: ['test/crash/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
