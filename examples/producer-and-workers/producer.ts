/** Hands in photos and waits for them, as a web server might: by a Client, without the code that does the work. */
import { Client } from 'perdure'
import { sqlite } from 'perdure/sqlite'
import type { definitions } from './definitions.ts'

const client = new Client<typeof definitions>({ store: sqlite('photos.db') })
const photos = Array.from({ length: 12 }, (_, index) => `photo-${index + 1}`)
const runs = await Promise.all(photos.map((photo) => client.start('resize', photo, { queue: 'photos' })))
console.log(`the producer has handed in ${runs.length} photos`)

const results = await Promise.all(runs.map((run) => run.result()))
const workers = new Set(results.map((result) => result.split(' ').at(-1)))
console.log(`${results.length} are done, by ${workers.size} processes`)
await client.close()
