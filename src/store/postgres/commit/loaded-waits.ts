/** The waits and buffered signals that a batch has read, and which of them its commands change. */
import { Waits } from '../../apply/waits.ts'
import type { AwaitedRun } from '../../commands.ts'
import type { EncodedValue } from '../../records.ts'

export class LoadedWaits extends Waits {
  /** Positions of waits for signals, by run, which may be there now or not. */
  readonly touched = new Map<string, Set<number>>()
  /** Keys for which a signal may be buffered now, or not. */
  readonly touchedKeys = new Set<string>()
  /** What runs were suspended for. */
  readonly suspended = new Map<string, readonly AwaitedRun[]>()

  protected override onChange(runId: string, position: number): void {
    const positions = this.touched.get(runId)
    if (positions === undefined) this.touched.set(runId, new Set([position]))
    else positions.add(position)
  }

  protected override onBuffered(key: string): void {
    this.touchedKeys.add(key)
  }

  /** As they were read: those of the runs that a batch may end. */
  loadAwaiting(parents: ReadonlyMap<string, readonly AwaitedRun[]>): void {
    for (const [runId, awaited] of parents) super.awaitRuns(runId, awaited)
  }

  override awaitRuns(runId: string, awaited: readonly AwaitedRun[]): void {
    super.awaitRuns(runId, awaited)
    this.suspended.set(runId, awaited)
  }

  override forgetRuns(runId: string): void {
    super.forgetRuns(runId)
    this.suspended.delete(runId)
  }

  bufferedOf(key: string): EncodedValue | undefined {
    return this.buffered.get(key)
  }
}
