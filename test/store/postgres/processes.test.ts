/** The store in a process of its own. */
import { describe, expect, it } from 'vitest'
import { exitOf, startChild } from './children.ts'
import { emptySchema } from './databases.ts'

async function outputOf(child: ReturnType<typeof startChild>): Promise<string> {
  let output = ''
  for await (const chunk of child.stdout ?? []) output += String(chunk)
  return output
}

describe('a process', () => {
  it('without the package pg is told to install it, when the store is opened', async () => {
    const child = startChild('without-driver.ts')
    expect(await outputOf(child)).toMatch(/^MISSING_DRIVER .*npm install pg@8/)
    expect(await exitOf(child)).toBe(0)
  })

  it('with nothing left to do ends, though its store is open and watched', async () => {
    const { url, schema } = await emptySchema()
    const child = startChild('nothing-left.ts', url, schema)
    expect(await outputOf(child)).toBe('kv')
    expect(await exitOf(child)).toBe(0)
  })
})
