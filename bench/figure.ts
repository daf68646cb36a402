/** A line of a report. */
import { percentile } from './measure.ts'

export interface Figure {
  readonly name: string
  readonly value: string
  readonly baseline: string
  readonly ratio: string
  readonly floor: string
}

export function figure(
  name: string,
  value: string,
  baseline: string,
  ratios: readonly number[],
  floor: string,
): Figure {
  const ascending = [...ratios].sort((a, b) => a - b)
  const all = ascending.map((ratio) => ratio.toFixed(2)).join(' / ')
  const middle = percentile(ascending, 0.5).toFixed(2)
  return { name, value, baseline, ratio: ascending.length > 1 ? `${middle} (${all})` : middle, floor }
}

/** Without a baseline. */
export function plain(name: string, value: string, floor: string): Figure {
  return { name, value, baseline: '', ratio: '', floor }
}

export function perSecond(count: number, what: string): string {
  return `${Math.round(count).toLocaleString('en')} ${what}/s`
}
