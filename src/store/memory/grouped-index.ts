/**
 * An ordered index for each definition and version, so that a claimant looks only at what it may take: runs of its
 * definitions, bound to no version or to its own.
 */
import type { ClaimableDefinition } from '../contract.ts'
import type { Entry } from './ordered-index.ts'
import { before, OrderedIndex } from './ordered-index.ts'

/** Runs that the same claimants may take. */
export interface Group {
  readonly definition: string
  readonly version: string | null
}

export interface Claimant {
  readonly definitions: ReadonlyMap<string, ClaimableDefinition>
  /** null: takes all versions. */
  readonly version: string | null
}

export class GroupedIndex {
  readonly #indexes = new Map<string, Map<string | null, OrderedIndex>>()

  get isEmpty(): boolean {
    return this.#indexes.size === 0
  }

  set({ definition, version }: Group, id: string, rank: number, place: number): void {
    const versions = this.#indexes.get(definition) ?? new Map<string | null, OrderedIndex>()
    const index = versions.get(version) ?? new OrderedIndex()
    this.#indexes.set(definition, versions.set(version, index))
    index.set(id, rank, place)
  }

  delete({ definition, version }: Group, id: string): void {
    const versions = this.#indexes.get(definition)
    const index = versions?.get(version)
    if (versions === undefined || index === undefined) return
    index.delete(id)
    if (index.size > 0) return
    versions.delete(version)
    if (versions.size === 0) this.#indexes.delete(definition)
  }

  firstOf({ definition, version }: Group): Entry | undefined {
    return this.#indexes.get(definition)?.get(version)?.first()
  }

  /** The first of all that the claimant may take, by rank and then by place. */
  first(claimant: Claimant): Entry | undefined {
    let first: Entry | undefined
    for (const index of this.#openTo(claimant)) {
      const entry = index.first()
      if (entry !== undefined && (first === undefined || before(entry, first))) first = entry
    }
    return first
  }

  /** What the claimant may take and is ranked up to `rank`, in no particular order. */
  upTo(claimant: Claimant, rank: number): readonly string[] {
    return this.#openTo(claimant).flatMap((index) => index.upTo(rank, index.size))
  }

  /** How many stand before a place. */
  countBefore(place: Pick<Entry, 'rank' | 'place'>): number {
    return this.entries().filter(({ entry }) => before(entry, place)).length
  }

  groups(): readonly Group[] {
    return this.#all().map(({ group }) => group)
  }

  entries(): readonly { readonly group: Group; readonly entry: Entry }[] {
    return this.#all().flatMap(({ group, index }) => index.entries().map((entry) => ({ group, entry })))
  }

  #all(): readonly { readonly group: Group; readonly index: OrderedIndex }[] {
    return [...this.#indexes].flatMap(([definition, versions]) =>
      [...versions].map(([version, index]) => ({ group: { definition, version }, index })),
    )
  }

  /** Looks up whichever are fewer: the definitions of the claimant, or those that there are. */
  #openTo({ definitions, version }: Claimant): readonly OrderedIndex[] {
    const open: OrderedIndex[] = []
    const add = (versions: ReadonlyMap<string | null, OrderedIndex> | undefined): void => {
      for (const [bound, index] of versions ?? []) {
        if (version === null || bound === null || bound === version) open.push(index)
      }
    }
    if (definitions.size <= this.#indexes.size) {
      for (const definition of definitions.keys()) add(this.#indexes.get(definition))
    } else {
      for (const [definition, versions] of this.#indexes) if (definitions.has(definition)) add(versions)
    }
    return open
  }
}
