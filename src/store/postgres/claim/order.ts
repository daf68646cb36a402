/** The order of the answer, of what a plan meant to take and could lock. */
import type { Candidate } from './candidate.ts'
import type { Plan } from './plan.ts'
import { byDueAt, isLimited } from './plan.ts'
import type { Room } from './room.ts'

export interface Taken extends Candidate {
  readonly room: Room
}

/** Suspended runs by the instant at which they were due, then one start of each source in turn. */
export function inOrder(plan: Plan, candidates: readonly Candidate[]): readonly Taken[] {
  const rooms = new Map(plan.rooms.map((room) => [room.source.queue, room]))
  const planned = new Map(plan.picks.map(({ seq }, n) => [seq, n]))
  const found = candidates.flatMap((candidate): readonly Taken[] => {
    const room = rooms.get(candidate.run.queue)
    return room === undefined ? [] : [{ ...candidate, room }]
  })
  const resumes = found.filter(({ run }) => run.status === 'WAITING').sort((a, b) => byDueAt(dueOf(a), dueOf(b)))
  const starts = plan.rooms.map((room) => {
    const own = found.filter((it) => it.room === room && it.run.status !== 'WAITING')
    const place = ({ run }: Taken): number => planned.get(run.seq) ?? 0
    return own.sort((a, b) =>
      isLimited(room.queue) ? place(a) - place(b) : a.run.rank - b.run.rank || a.run.seq - b.run.seq,
    )
  })
  const longest = Math.max(0, ...starts.map(({ length }) => length))
  const rounds = Array.from({ length: longest }, (_, n) => starts.flatMap((of) => of.slice(n, n + 1)))
  return [...resumes, ...rounds.flat()]
}

function dueOf({ run }: Candidate): { readonly dueAt: number; readonly seq: number } {
  return { dueAt: run.dueAt ?? 0, seq: run.seq }
}
