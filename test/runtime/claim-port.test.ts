/** A pass writes under its claim alone, and what a write finds reaches its delivery. */
import { describe, expect, test } from 'vitest'
import { ClaimPort } from '../../src/runtime/claim-port.ts'
import type { Hub } from '../../src/runtime/hub.ts'
import { entry, newRun, put } from './commands.ts'
import { turns, until } from './fast-scheduler.ts'
import { workshop } from './workshop.ts'

async function claimed(hub: Hub, runId: string, token: string): Promise<void> {
  const claim = { token, owner: 'o', leaseMs: 30_000, version: null }
  await hub.submit({ type: 'enqueue', commandId: runId, runs: [newRun(runId, '1', { claim })] })
}

async function porting() {
  const shop = await workshop()
  const { hub } = shop
  await claimed(hub, 'a', 't')
  const told: string[] = []
  const portOf = (token: string): ClaimPort =>
    new ClaimPort({
      ...{ hub, runId: 'a', token },
      onClaimLost: () => void told.push('lost'),
      onCancelRequested: () => void told.push('cancel'),
      onApplied: ({ refusals }) => void told.push(...refusals.map(({ id }) => `refused ${id}`)),
    })
  return { ...shop, told, port: portOf('t'), stale: portOf('stale') }
}

const started = (id: string, inputHash = '') => ({ type: 'start', run: newRun(id, '1', { inputHash }) }) as const
const unvalued = (seq: number) => ({ ...entry(seq, ''), value: null })

describe('the port of a pass', () => {
  test('tells of a lost claim whatever is written, and writes nothing', async () => {
    const { stale, store, told } = await porting()
    expect(await stale.store([entry(0, '1', [put('k', '1')])])).toBe(false)
    expect(await stale.perform(unvalued(0), started('child'))).toEqual({ type: 'claimLost' })
    expect(await stale.wait(0, 'key', [entry(0, '1')])).toEqual({ type: 'claimLost' })
    expect(await stale.expire(0)).toEqual({ type: 'claimLost' })
    expect(told).toEqual(['lost', 'lost', 'lost', 'lost'])
    expect((await store.histories(['a'])).get('a') ?? []).toEqual([])
    expect(await store.values(['k'])).toEqual([undefined])
    expect(await store.runs(['child'])).toEqual([undefined])
  })

  test('tells of a request to cancel, and of follow-ups that were refused', async () => {
    const { port, hub, told } = await porting()
    await claimed(hub, 'there', 'other')
    expect(await port.store([entry(0, '1', [started('there', 'other'), started('new')])])).toBe(true)
    expect(told).toEqual(['refused there'])
    await hub.submit({ type: 'cancel', commandId: 'c', runId: 'a' })
    expect(await port.perform(unvalued(1), started('child'))).toMatchObject({ type: 'performed' })
    expect(await port.store([entry(2, '1')])).toBe(true)
    expect(told).toEqual(['refused there', 'cancel', 'cancel'])
  })

  test('brings signals to the waits that are open, once', async () => {
    const { port, hub } = await porting()
    const heard: string[] = []
    expect(await port.wait(0, 'key', [])).toEqual({ type: 'waiting' })
    port.onSignal(0, (payload) => void heard.push(payload))
    const giveUp = port.onSignal(0, (payload) => void heard.push(`given up ${payload}`))
    giveUp()
    await turns(10)
    expect(heard).toEqual([])
    await hub.submit({ type: 'signal', commandId: 's', key: 'key', payload: '"now"' })
    await until(() => heard.length === 1)
    expect(await port.expire(0)).toEqual({ type: 'signalled', payload: '"now"' })
    await turns(10)
    expect(heard).toEqual(['"now"'])
  })

  test('looks at other runs, and waits for their ends', async () => {
    const { port, hub } = await porting()
    await claimed(hub, 'child', 'child-token')
    expect(await port.ending('child')).toBeUndefined()
    expect(await port.ending('nobody')).toBe('missing')
    expect([await port.attempts('child'), await port.attempts('nobody')]).toEqual([1, 0])
    const heard: unknown[] = []
    port.onEnded('child', (ended) => void heard.push(ended))
    port.onEnded('nobody', (ended) => void heard.push(ended))
    const settlement = { type: 'succeed', output: '1' } as const
    await hub.submit({ type: 'settle', runId: 'child', token: 'child-token', entries: [], settlement })
    await until(() => heard.length === 2)
    expect(heard).toContainEqual({ status: 'SUCCESS', output: '1' })
    expect(heard).toContain('missing')
    expect(await port.ending('child')).toEqual({ status: 'SUCCESS', output: '1' })
  })
})
