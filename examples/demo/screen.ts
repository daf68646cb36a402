/** What the demo prints: colours and a live line on a terminal, plain lines elsewhere and under NO_COLOR. */
import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

const { stdout } = process
const isTerminal = stdout.isTTY === true
const isColoured = isTerminal && (process.env['NO_COLOR'] ?? '') === ''
let isLiveLineShown = false
let failures = 0

export function paint(style: Style, text: string): string {
  return isColoured ? styleText(style, text) : text
}

export function line(text = ''): void {
  if (isLiveLineShown) stdout.write('\r\x1b[K')
  isLiveLineShown = false
  stdout.write(`${text}\n`)
}

export function heading(text: string): void {
  line()
  line(paint('bold', text))
  line()
}

/** Replaces itself; only on a terminal. */
export function liveLine(text: string): void {
  if (!isTerminal) return
  stdout.write(`\r\x1b[K${text}`)
  isLiveLineShown = true
}

export function bar(done: number, total: number): string {
  const width = 30
  const filled = Math.min(width, Math.floor((done / total) * width))
  return `${paint('green', '█'.repeat(filled))}${paint('dim', '░'.repeat(width - filled))}`
}

/** Prints whether something that must hold does. A single one that doesn't makes the demo fail. */
export function verdict(holds: boolean, text: string): void {
  if (!holds) failures += 1
  line(`  ${holds ? paint('green', '✔') : paint('red', '✘ NOT TRUE:')} ${text}`)
}

export function failed(): boolean {
  return failures > 0
}
