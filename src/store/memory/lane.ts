/** A lane of a queue: the runs that share its limits, and where it stands among the lanes of its queue. */
import type { EpochMs } from '../../core/clock.ts'
import type { QueueKnobs } from '../records.ts'
import { GroupedIndex } from './grouped-index.ts'

export class Lane {
  readonly name: string
  /** Ids of claimable runs, by `rank` and `seq`; and of suspended ones whose instant has come, by `dueAt` and `seq`. */
  readonly enqueued = new GroupedIndex()
  readonly due = new GroupedIndex()
  readonly pending = new Set<string>()
  readonly waiting = new Set<string>()
  /** Since when it waits for its turn, as a number that grows. */
  turn = 0
  /** Before then its rate limit lets nothing start. */
  parkedUntil: EpochMs = Number.NEGATIVE_INFINITY
  /** Passed over for the rest of this claim, as the claimant has no room in it. */
  aside = false
  /** Whether the global limit lets it start a run, or resume one. */
  startsOpen = true
  resumesOpen = true

  constructor(name: string) {
    this.name = name
  }

  get isEmpty(): boolean {
    return this.pending.size === 0 && this.waiting.size === 0 && this.enqueued.isEmpty && !this.aside
  }

  /** How many of its runs count against the global limit. */
  active(knobs: QueueKnobs): number {
    return this.pending.size + (knobs.releaseWhileWaiting ? 0 : this.waiting.size)
  }

  /** Ids of those that count against the global limit. */
  holders(knobs: QueueKnobs): readonly string[] {
    return [...this.pending, ...(knobs.releaseWhileWaiting ? [] : this.waiting)]
  }

  /** Looks again at the global limit; true if what it lets happen has changed. */
  reopen(knobs: QueueKnobs | null): boolean {
    const { startsOpen, resumesOpen } = this
    const limit = knobs?.globalConcurrency ?? null
    const hasRoom = knobs === null || limit === null || this.active(knobs) < limit
    this.startsOpen = !this.aside && hasRoom
    // One that waits and is counted still needs no room to go on.
    this.resumesOpen = !this.aside && (hasRoom || knobs?.releaseWhileWaiting !== true)
    return startsOpen !== this.startsOpen || resumesOpen !== this.resumesOpen
  }
}
