/**
 * The workflow of the demo: an order in four steps, each an effect outside of the store.
 *
 * This is ordinary code. What makes it durable: each step's outcome is recorded before the body goes on, so a process
 * that takes over gets the records of what is done and runs what is not. A step that was under way when its process died
 * runs again, under the same idempotency key, by which the service recognises it.
 */
import { define } from 'perdure'

export interface Order {
  readonly item: string
  readonly total: number
}

/** What the steps call. Each call gives the service's reference for what it did. */
export interface Shop {
  call(service: Service, key: string, details: unknown): Promise<string>
}

export type Service = 'charge card' | 'reserve stock' | 'ship' | 'send mail'

export const SERVICES: readonly Service[] = ['charge card', 'reserve stock', 'ship', 'send mail']

const app = define<{ readonly shop: Shop }>()

export const order = app.workflow('order', async (ctx, { item, total }: Order) => {
  const { shop } = ctx.state
  const receipt = await ctx.step('charge card', (step) => shop.call('charge card', step.idempotencyKey, { total }))
  await ctx.step('reserve stock', (step) => shop.call('reserve stock', step.idempotencyKey, { item }))
  const parcel = await ctx.step('ship', (step) => shop.call('ship', step.idempotencyKey, { item }))
  await ctx.step('send mail', (step) => shop.call('send mail', step.idempotencyKey, { receipt, parcel }))
  return { receipt, parcel }
})
