/** Assertions of what this library itself guarantees: one that fails is a bug here, never a caller's mistake. */

export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`perdure: internal invariant broken: ${message}. Please report this.`)
}
