/** The claim lane: which runs are given to whom, within the limits of their queues. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { ClaimedRun, ClaimOutcome, ClaimRequest } from '../contract.ts'
import type { RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import { byDueAt, Supply } from './supply.ts'
import type { Tables } from './tables.ts'

export function claim(tables: Tables, request: ClaimRequest, now: EpochMs): ClaimOutcome {
  const runs = request.tokens.flatMap((token) => heldUnder(tables, token))
  const held = new Set(runs.map(({ token }) => token))
  const definitions = new Map(request.definitions.map((definition) => [definition.name, definition]))
  const supplies = request.sources.map(
    (source) => new Supply(tables, { definitions, version: request.version }, source, now),
  )
  for (const supply of supplies) {
    for (const { run } of runs) supply.count(run)
    supply.advance()
  }
  const offers = offersOf(supplies)
  for (const token of request.tokens) {
    if (held.has(token)) continue
    const next = offers.next()
    if (next.done === true) break
    const { supply, run } = next.value
    const by = { token, owner: request.owner, leaseMs: supply.leaseMs, version: request.version }
    const claimed = tables.apply(transitions.claim(run, by, now, definitions.get(run.definition)))
    supply.count(claimed)
    if (transitions.isStart(run)) supply.started(claimed)
    runs.push(toClaimed(tables, claimed, token))
  }
  for (const supply of supplies) supply.close()
  const nextAt = Math.min(...supplies.map((supply) => supply.nextAt() ?? Number.POSITIVE_INFINITY))
  return { runs, nextAt: nextAt === Number.POSITIVE_INFINITY ? null : nextAt }
}

interface Offer {
  readonly supply: Supply
  readonly run: RunRecord
}

/** The runs to claim, in order. The next is looked for when it is asked for, once the one before has been claimed. */
function* offersOf(supplies: readonly Supply[]): Generator<Offer> {
  for (let due = firstDue(supplies); due !== undefined; due = firstDue(supplies)) yield due
  let open = supplies
  while (open.length > 0) {
    const stillOpen: Supply[] = []
    for (const supply of open) {
      const run = supply.nextStart()
      if (run === undefined) continue
      stillOpen.push(supply)
      yield { supply, run }
    }
    open = stillOpen
  }
}

function firstDue(supplies: readonly Supply[]): Offer | undefined {
  let first: Offer | undefined
  for (const supply of supplies) {
    const run = supply.nextResume()
    if (run !== undefined && (first === undefined || byDueAt(run, first.run) < 0)) first = { supply, run }
  }
  return first
}

function heldUnder(tables: Tables, token: string): readonly ClaimedRun[] {
  const id = tables.runs.claims.under(token)
  return id === undefined ? [] : [toClaimed(tables, tables.runs.at(id), token)]
}

function toClaimed(tables: Tables, run: RunRecord, token: string): ClaimedRun {
  const input = tables.inputs.get(run.id)
  invariant(input !== undefined, `run ${run.id} has no input`)
  return { run, token, input }
}
