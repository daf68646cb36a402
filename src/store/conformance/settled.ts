/** Outcomes of a batch when each of its commands has one, those that went on by themselves included. */
import type { CommitOutcome, Outcome } from '../contract.ts'

export function settled(answers: readonly CommitOutcome[]): Promise<readonly Outcome[]> {
  const outcomes = answers.map(async (answer) => (answer.type === 'blocked' ? await answer.outcome : answer))
  return Promise.all(outcomes)
}
