/**
 * A stand-in, in the lowered copy of a value (lower.ts), for a thing that needs more than the format underneath
 * knows: a kind, the plain data from which the thing is made (`head`), and what is set on it once it is there
 * (`body`), which may lead back to the thing itself.
 */
export class Stored {
  readonly kind: StoredKind
  readonly head: unknown
  readonly body: Readonly<Record<string, unknown>> | undefined

  constructor(kind: StoredKind, head: unknown, body?: Readonly<Record<string, unknown>>) {
    this.kind = kind
    this.head = head
    this.body = body
  }
}

export type StoredKind = 'bigint' | 'bytes' | 'error' | 'regexp' | 'url'
