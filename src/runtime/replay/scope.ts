/**
 * Knows where code runs: inside the body of a step, however deep in its awaits, or in which chain of a workflow's body.
 *
 * A chain is told by the durable call that it made last, which the context of asynchronous code carries over every
 * await. So the same call of two parallel chains can be told apart even when its name is the same and an await that is
 * not durable lets the chains change places on a replay.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface StepScope {
  readonly runId: string
  readonly step: string
}

type Scope =
  | ({ readonly type: 'step' } & StepScope)
  /** `owner` tells one pass from another without keeping it in memory; `lineage` is that of the last call. */
  | { readonly type: 'body'; readonly owner: symbol; readonly lineage: number }

const scope = new AsyncLocalStorage<Scope>()

/** What calls descend from that no call came before. */
export const ROOT_LINEAGE = 0

export function insideStep<T>(of: StepScope, body: () => T): T {
  return scope.run({ type: 'step', runId: of.runId, step: of.step }, body)
}

/** The step of this run that the caller is in the body of; undefined outside. */
export function enclosingStep(runId: string): StepScope | undefined {
  const enclosing = scope.getStore()
  return enclosing?.type === 'step' && enclosing.runId === runId ? enclosing : undefined
}

/**
 * Runs a body in an async context of its own, so that the scope which its first call enters reaches nothing but what
 * follows from the body. It begins in no scope, which means the root: on Node 20 the first scope of a process makes
 * each of its promises dearer, and a process whose bodies make no durable call never needs one.
 */
export function inBodyContext<T>(body: () => Promise<T>): Promise<T> {
  return settled.then(body)
}

/** The lineage of the last call of the chain that the caller is in. */
export function lineageHere(owner: symbol): number {
  const here = scope.getStore()
  return here?.type === 'body' && here.owner === owner ? here.lineage : ROOT_LINEAGE
}

/**
 * The scope of the latest call, while the code that made it has not yet reached an await. A call made in it begins a
 * chain beside that of the latest call, where one made in it later follows the latest call: a chain's first call and
 * its neighbour's second would else be of one lineage.
 */
let latest: Scope | undefined
const settled = Promise.resolve()

function forgetLatest(): void {
  latest = undefined
}

/** The lineage of a call that is made here and now; calls that follow it in this chain descend from it. */
export function nextLineage(owner: symbol, verb: string, name: string): number {
  const relation = latest !== undefined && scope.getStore() === latest ? 'beside' : 'after'
  const lineage = lineageOf(lineageHere(owner), relation, verb, name)
  const entered: Scope = { type: 'body', owner, lineage }
  scope.enterWith(entered)
  if (latest === undefined) void settled.then(forgetLatest)
  latest = entered
  return lineage
}

/** 32 bits (FNV-1a) of all calls from the root of the chain to this one, and of how each relates to the one before. */
export function lineageOf(parent: number, relation: 'beside' | 'after', verb: string, name: string): number {
  let hash = 0x811c9dc5
  for (const text of [String(parent), relation, verb, name]) {
    for (let index = 0; index < text.length; index += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
    }
    hash = Math.imul(hash ^ 0xffff, 0x01000193)
  }
  return hash >>> 0
}
