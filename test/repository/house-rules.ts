/**
 * The rules of the house that no linter here can express, checked on the syntax tree:
 *
 * - `clock`, `random`: in src/, only the four injected sources of core (and the lease thread, which must run when the
 *   main thread doesn't) read real time or make randomness. `new Date(ms)` is a conversion and allowed.
 * - `double-cast`: no `as unknown as`, which makes any type of any other.
 * - `long-function`: at most 70 lines a function. The bodies of tests declared in it (`describe`, `it`, `test`) are
 *   functions of their own: they count for themselves, and not for the one they are declared in.
 */
import ts from 'typescript'

export interface Breach {
  readonly rule: 'clock' | 'random' | 'double-cast' | 'long-function'
  readonly path: string
  readonly line: number
}

const MOST_LINES = 70

/** The only places that touch what a simulator must own. */
const INJECTED: ReadonlySet<string> = new Set([
  'src/core/clock.ts',
  'src/core/scheduler.ts',
  'src/core/random.ts',
  'src/core/ids.ts',
  'src/store/sqlite/lease-thread.js',
])

const FORBIDDEN_CALLS: ReadonlyMap<string, Breach['rule']> = new Map([
  ['Date', 'clock'],
  ['Date.now', 'clock'],
  ['process.hrtime', 'clock'],
  ['process.hrtime.bigint', 'clock'],
  ['process.uptime', 'clock'],
  ['AbortSignal.timeout', 'clock'],
  ['Math.random', 'random'],
])

/** `path` is relative to the repository, with forward slashes. */
export function breaches(path: string, text: string): readonly Breach[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: Breach[] = []
  const visit = (node: ts.Node): void => {
    const rule = broken(node, path, source)
    if (rule !== null) found.push({ rule, path, line: lineOf(source, node.getStart(source)) })
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function broken(node: ts.Node, path: string, source: ts.SourceFile): Breach['rule'] | null {
  if (ts.isFunctionLike(node)) return tooLong(node, source) ? 'long-function' : null
  if (!path.startsWith('src/')) return null
  if (ts.isAsExpression(node)) return isDoubleCast(node) ? 'double-cast' : null
  return INJECTED.has(path) ? null : impure(node, source)
}

function impure(node: ts.Node, source: ts.SourceFile): Breach['rule'] | null {
  if (ts.isNewExpression(node) && node.expression.getText(source) === 'Date') {
    return (node.arguments ?? []).length === 0 ? 'clock' : null
  }
  // A bare reference (`const now = Date.now`) hides a call as well as a call shows it.
  if (ts.isPropertyAccessExpression(node)) return FORBIDDEN_CALLS.get(withoutGlobal(node.getText(source))) ?? null
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
    return FORBIDDEN_CALLS.get(node.expression.text) ?? null
  }
  return null
}

function withoutGlobal(text: string): string {
  return text.replaceAll('?.', '.').replace(/^globalThis\./, '')
}

function isDoubleCast(node: ts.AsExpression): boolean {
  const inner = ts.isParenthesizedExpression(node.expression) ? node.expression.expression : node.expression
  return ts.isAsExpression(inner) && inner.type.kind === ts.SyntaxKind.UnknownKeyword
}

function tooLong(node: ts.SignatureDeclaration, source: ts.SourceFile): boolean {
  let lines = linesOf(source, node)
  const withoutTests = (inner: ts.Node): void => {
    if (declaresTest(inner, source)) lines -= linesOf(source, inner) - 1
    else ts.forEachChild(inner, withoutTests)
  }
  ts.forEachChild(node, withoutTests)
  return lines > MOST_LINES
}

/** True for the body of a `describe(...)`, `it(...)`, `test.each(...)(...)` and the like. */
function declaresTest(node: ts.Node, source: ts.SourceFile): boolean {
  if (!ts.isFunctionLike(node) || !ts.isCallExpression(node.parent)) return false
  return /^(describe|it|test)\b/.test(node.parent.expression.getText(source))
}

function linesOf(source: ts.SourceFile, node: ts.Node): number {
  return lineOf(source, node.getEnd()) - lineOf(source, node.getStart(source)) + 1
}

function lineOf(source: ts.SourceFile, position: number): number {
  return source.getLineAndCharacterOfPosition(position).line + 1
}
