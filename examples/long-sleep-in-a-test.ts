/** A workflow that takes a year, tested in milliseconds: a MockClock moves its sleeps. */
import assert from 'node:assert/strict'
import { Engine, workflow } from 'perdure'
import { memory } from 'perdure/memory'
import { MockClock } from 'perdure/testing'

const renewals: string[] = []

const subscription = workflow('subscription', async (ctx, months: number) => {
  for (let month = 1; month <= months; month += 1) {
    await ctx.sleep('30 days')
    const today = await ctx.now()
    await ctx.step('renew', async () => renewals.push(today.toISOString().slice(0, 10)))
  }
})

const clock = new MockClock(Date.UTC(2026, 0, 1))
const engine = new Engine({ store: memory({ clock }), definitions: [subscription] })
await engine.launch()
const run = await engine.start(subscription, 12)

await clock.advance('29 days')
assert.deepEqual(renewals, [])
await clock.advance('1 day')
assert.deepEqual(renewals, ['2026-01-31'])
assert.equal(await run.status(), 'WAITING')

await clock.advance('330 days')
assert.equal(await run.status(), 'SUCCESS')
console.log(`${renewals.length} renewals, the last on ${renewals.at(-1)}`)
await engine.shutdown()
