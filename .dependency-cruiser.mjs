/**
 * The layers of ARCHITECTURE.md as rules: `api -> runtime -> store -> core`, each using those to its right only.
 * `npm test` applies them; test/repository/layers.test.ts shows that they bite.
 */

/** Files of `from` may import, within src/, only files of `to`. */
const layer = (name, from, to) => ({
  name: `layer-${name}`,
  severity: 'error',
  comment: `${name} may import from ${to.join(', ')} only`,
  from: { path: `^src/${from}` },
  to: { path: '^src/', pathNot: to.map((path) => `^src/${path}`) },
})

/** The package `name` has one home in src/. */
const home = (name, path) => ({
  name: `home-of-${name}`,
  severity: 'error',
  comment: `only ${path} may import ${name}`,
  from: { path: '^src/', pathNot: `^src/${path}` },
  to: { path: `^node_modules/(@types/)?${name}/` },
})

const CONTRACT = 'store/[^/]+\\.ts$'

export default {
  forbidden: [
    layer('core', 'core/', ['core/']),
    layer('store', CONTRACT, [CONTRACT, 'core/']),
    // The kit's model test holds a store against memory(), the reference model.
    layer('conformance', 'store/conformance/', ['store/conformance/', 'store/memory/', CONTRACT, 'core/']),
    layer('apply', 'store/apply/', ['store/apply/', CONTRACT, 'core/']),
    layer('memory', 'store/memory/', ['store/memory/', 'store/apply/', CONTRACT, 'core/']),
    layer('postgres', 'store/postgres/', ['store/postgres/', 'store/apply/', CONTRACT, 'core/']),
    layer('sqlite', 'store/sqlite/', ['store/sqlite/', CONTRACT, 'core/']),
    layer('runtime', 'runtime/', ['runtime/', CONTRACT, 'core/']),
    layer('api', 'api/', ['api/', 'runtime/', CONTRACT, 'core/', 'observe/']),
    layer('observe', 'observe/', ['observe/', 'core/']),
    layer('entry', 'index\\.ts$', ['api/', 'runtime/', CONTRACT, 'core/', 'observe/']),
    home('better-sqlite3', 'store/sqlite/'),
    home('pg', 'store/postgres/'),
    home('seroval', 'core/codec'),
    home('ms', 'core/'),
    {
      name: 'no-cycles',
      severity: 'error',
      comment: 'a cycle, even of types, means that two files are one',
      from: {},
      to: { circular: true },
    },
    {
      name: 'src-stands-alone',
      severity: 'error',
      comment: 'what is published imports neither tests nor scripts',
      from: { path: '^src/' },
      to: { path: '^(test|scripts|bench|examples)/' },
    },
    {
      name: 'examples-are-users',
      severity: 'error',
      comment: 'examples import what users can: the entry points of the package',
      from: { path: '^examples/' },
      to: { path: '^src/', pathNot: '^src/(index|testing/index|store/(memory|sqlite|postgres)/index)\\.ts$' },
    },
    {
      name: 'declared-dependencies',
      severity: 'error',
      comment:
        'what is published imports declared dependencies only; a development tool is not one, even for its types',
      from: { path: '^src/', pathNot: '^src/store/conformance/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['npm', 'npm-peer'] },
    },
    {
      name: 'kit-is-given-its-tools',
      severity: 'error',
      comment: 'the conformance kit is handed its test runner and fast-check, and names their types at most',
      from: { path: '^src/store/conformance/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['npm', 'npm-peer', 'type-only'],
      },
    },
    {
      name: 'resolvable',
      severity: 'error',
      comment: 'every import leads to a file or to an installed package',
      from: { path: '^(src|test|scripts|bench|examples)/' },
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '^dist/'] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.mjs', '.json', '.d.ts'],
    },
  },
}
