/** Loads, waits for a line, works: `work` adds without end, `finish` leaves when every run has ended. */
import { once } from 'node:events'
import { addForever, finish, whereOf } from '../transactions.ts'

const where = whereOf(process.argv.slice(2))
process.stdout.write('loaded\n')
const [word] = await once(process.stdin, 'data')
process.stdin.destroy()
if (String(word).trim() === 'work') await addForever(where)
else await finish(where)
