/** What every benchmark needs: closed loops of callers, percentiles, and the delay of the event loop meanwhile. */
import { monitorEventLoopDelay } from 'node:perf_hooks'

export interface Throughput {
  readonly perSecond: number
  /** 99th percentile of the event loop's delay while it ran, in milliseconds. */
  readonly loopDelayP99Ms: number
}

/** `callers` callers, each of which makes its next call when the last one has ended; `total` calls in all. */
export async function closedLoop(
  callers: number,
  total: number,
  call: (index: number) => Promise<unknown>,
): Promise<Throughput> {
  let next = 0
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const start = performance.now()
  const caller = async (): Promise<void> => {
    while (next < total) await call(next++)
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const seconds = (performance.now() - start) / 1_000
  delay.disable()
  return { perSecond: total / seconds, loopDelayP99Ms: delay.percentile(99) / 1e6 }
}

/** Milliseconds of each of `times` calls, one after the other, ascending. */
export async function latencies(times: number, call: (index: number) => Promise<unknown>): Promise<readonly number[]> {
  const samples: number[] = []
  for (let index = 0; index < times; index += 1) {
    const start = performance.now()
    await call(index)
    samples.push(performance.now() - start)
  }
  return samples.sort((a, b) => a - b)
}

export function percentile(ascending: readonly number[], fraction: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(fraction * ascending.length))] ?? Number.NaN
}

/** The middle of several measurements: a machine that others use as well is never quiet for long. */
export async function median(times: number, measure: () => number | Promise<number>): Promise<number> {
  const samples: number[] = []
  for (let index = 0; index < times; index += 1) samples.push(await measure())
  return percentile(
    samples.sort((a, b) => a - b),
    0.5,
  )
}
