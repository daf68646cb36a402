import { describe, expect, it } from 'vitest'
import { realScheduler } from '../../src/core/scheduler.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { realPause, START, Worker } from './clock-stage.ts'

describe('quiescence', () => {
  it('work begun just before the call is worked off at the old instant', async () => {
    const clock = new MockClock(START)
    const worker = new Worker()
    clock.join(worker)
    let ended = -1
    void worker.work(30, () => {
      ended = clock.now()
    })
    await clock.advance(100)
    expect(ended).toBe(START)
  })

  it('work that begins work, with turns between that look idle to each participant, is followed', async () => {
    const clock = new MockClock(START)
    const workers = [new Worker(), new Worker()] as const
    for (const worker of workers) clock.join(worker)
    const instants: number[] = []
    clock.at(START + 100, () => {
      void workers[0].work(7).then(async () => {
        for (let turn = 0; turn < 2; turn++) await realScheduler.turn()
        await workers[1].work(7, () => instants.push(clock.now()))
      })
    })
    clock.at(START + 200, () => instants.push(clock.now()))
    await clock.advance(200)
    expect(instants).toEqual([START + 100, START + 200])
  })

  it('activity alone, without anyone busy, is waited out', async () => {
    const clock = new MockClock(START)
    const worker = new Worker()
    clock.join(worker)
    let ended = -1
    clock.at(START + 100, () => {
      void (async () => {
        for (let turn = 0; turn < 100; turn++) {
          await realScheduler.turn()
          if (turn % 3 === 0) worker.happened()
        }
        ended = clock.now()
        worker.happened()
      })()
    })
    await clock.advance(1_000)
    expect(ended).toBe(START + 100)
  })

  it('a user’s function is waited for as long as something happens meanwhile', async () => {
    const clock = new MockClock(START)
    const worker = new Worker()
    clock.join(worker)
    let ended = -1
    clock.at(START + 100, () => {
      void worker.userCode(async () => {
        const begun = realScheduler.monotonic()
        while (realScheduler.monotonic() - begun < 150) {
          await realScheduler.turn()
          worker.happened()
          await realScheduler.turn()
        }
        ended = clock.now()
      })
    })
    await clock.advance(1_000)
    expect(ended).toBe(START + 100)
  })

  it('a user’s function that ends soon in real time is waited for', async () => {
    const clock = new MockClock(START)
    const worker = new Worker()
    clock.join(worker)
    let ended = -1
    clock.at(START + 100, () => {
      void worker.userCode(async () => {
        await realPause(5)
        ended = clock.now()
      })
    })
    await clock.advance(1_000)
    expect(ended).toBe(START + 100)
  })

  it('a user’s function that a test holds does not hold the clock', async () => {
    const clock = new MockClock(START)
    const worker = new Worker()
    clock.join(worker)
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    clock.at(START + 100, () => void worker.userCode(() => held))
    await clock.advance(1_000)
    expect(clock.now()).toBe(START + 1_000)
    expect(worker.runningUserCode()).toBe(true)
    release()
    await clock.advance(1)
    expect(worker.runningUserCode()).toBe(false)
  })

  it('who has left is not waited for', async () => {
    const clock = new MockClock(START)
    const leave = clock.join({ activity: () => 0, busy: () => true, runningUserCode: () => false })
    leave()
    leave()
    await clock.advance(100)
    expect(clock.now()).toBe(START + 100)
  })
})
