import { expect, test } from 'vitest'
import { CancelRequests } from '../../src/runtime/cancel-requests.ts'
import { turns, until } from './fast-scheduler.ts'
import { workshop } from './workshop.ts'

async function listening({ hasAny = true } = {}) {
  const { hub, calls, store } = await workshop()
  const told: string[] = []
  const requests = new CancelRequests({
    ...{ hub, owner: 'o', hasAny: () => hasAny },
    onRequest: (token) => void told.push(token),
  })
  requests.start()
  const questions = (): number => calls.filter(({ name }) => name === 'cancelRequests').length
  return { hub, store, requests, told, questions }
}

test('a notice is passed on without a question', async () => {
  const { hub, told, questions } = await listening()
  hub.notices.emit({ type: 'cancelRequested', token: 't' })
  await turns(4)
  expect(told).toEqual(['t'])
  expect(questions()).toBe(0)
})

test('however many changes there are, one question is under way, and one more follows', async () => {
  const { hub, requests, questions } = await listening()
  const activity = requests.activity()
  for (let changes = 0; changes < 100; changes += 1) hub.notices.emit({ type: 'changed' })
  expect(requests.busy()).toBe(true)
  await until(() => !requests.busy())
  expect(questions()).toBe(2)
  expect(requests.activity()).toBeGreaterThan(activity)
})

test('nothing is asked with nothing in hand, nor after the end', async () => {
  const idle = await listening({ hasAny: false })
  idle.hub.notices.emit({ type: 'changed' })
  const stopped = await listening()
  stopped.requests.stop()
  stopped.hub.notices.emit({ type: 'changed' })
  await turns(4)
  expect([idle.questions(), stopped.questions()]).toEqual([0, 0])
})
