/** Who claims, and what it serves. */
import type { EpochMs } from '../../../core/clock.ts'
import type { ClaimableDefinition, ClaimRequest } from '../../contract.ts'

export interface Claimant {
  readonly owner: string
  readonly definitions: ReadonlyMap<string, ClaimableDefinition>
  /** null: all of them. */
  readonly version: string | null
  readonly now: EpochMs
}

export function toClaimant({ owner, definitions, version }: ClaimRequest, now: EpochMs): Claimant {
  return { owner, definitions: new Map(definitions.map((it) => [it.name, it])), version, now }
}

export function serves(claimant: Claimant, definition: string, version: string | null): boolean {
  if (!claimant.definitions.has(definition)) return false
  return claimant.version === null || version === null || version === claimant.version
}
