/**
 * The programs that tests of queues run as processes, built into one file each when this module is loaded: so a process
 * is up within 0.1 s of a processor's time, instead of the 0.6 s that it takes to load a hundred TypeScript files. The
 * tests of queues start a hundred processes.
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'vite'
import { afterAll } from 'vitest'
import { type Child, startUnder } from './processes.ts'

const PROGRAMS = ['caller', 'producer', 'racer', 'sleepers', 'suspended', 'worker'] as const

const ROOT = join(import.meta.dirname, '../..')
const CACHE = join(ROOT, 'node_modules/.cache')
/** Stores that start a thread, from a file that lies beside the one that starts it. */
const THREADED = ['sqlite', 'postgres'] as const

const programs = await buildPrograms()
afterAll(() => rmSync(programs, { recursive: true, force: true }))

/** Runs `children/queue-<program>.ts`. */
export function startProgram(program: (typeof PROGRAMS)[number], ...args: readonly string[]): Child {
  return startUnder([], join(programs, `${program}.mjs`), ...args)
}

/** In a process whose clock is so many milliseconds ahead. */
export function startShifted(shiftMs: number, program: (typeof PROGRAMS)[number], ...args: readonly string[]): Child {
  const shift = new URL('./children/shift-clock.js', import.meta.url)
  shift.search = String(shiftMs)
  return startUnder(['--import', shift.href], join(programs, `${program}.mjs`), ...args)
}

/** The folder of the built programs: below node_modules, where they find the packages that they import. */
async function buildPrograms(): Promise<string> {
  mkdirSync(CACHE, { recursive: true })
  const folder = mkdtempSync(join(CACHE, 'perdure-queue-children-'))
  const input = Object.fromEntries(
    PROGRAMS.map((program) => [program, join(import.meta.dirname, `children/queue-${program}.ts`)]),
  )
  await build({
    configFile: false,
    logLevel: 'error',
    root: ROOT,
    resolve: { tsconfigPaths: true },
    build: {
      ...{ ssr: true, target: 'node20', minify: false, outDir: folder },
      rollupOptions: {
        input,
        output: {
          ...{ entryFileNames: '[name].mjs', chunkFileNames: '[name].mjs' },
          codeSplitting: {
            includeDependenciesRecursively: false,
            groups: THREADED.map((store) => ({
              name: `${store}/host`,
              test: new RegExp(`store/${store}/lease-thread-host\\.ts$`),
            })),
          },
        },
      },
    },
  })
  for (const store of THREADED) {
    copyFileSync(join(ROOT, 'src/store', store, 'lease-thread.js'), join(folder, store, 'lease-thread.js'))
  }
  return folder
}
