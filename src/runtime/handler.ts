/** What the runtime knows of a registered definition: enough to deliver its runs. */
import type { DefinitionKind, Retention } from '../store/records.ts'
import type { Pass } from './replay/pass.ts'

export interface Handler {
  readonly name: string
  readonly kind: DefinitionKind
  readonly maxRecoveries: number
  readonly timeoutMs: number | null
  /** How long its ended runs are kept; null: as their queue says. */
  readonly retention: Retention | null
  /**
   * Turns the decoded input into what the body gets; undefined: the body gets it as it is. Rejects if the definition's
   * schema refuses it.
   */
  readonly parseInput: ((input: unknown) => Promise<unknown>) | undefined
  /** Walks the body once; what it resolves to is the output, as it will be stored. */
  body(pass: Pass, input: unknown): Promise<unknown>
}
