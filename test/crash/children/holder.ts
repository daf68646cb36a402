/** Another program that holds the write lock of the file until it is told to let go. */
import { once } from 'node:events'
import Database from 'better-sqlite3'

const [path = ''] = process.argv.slice(2)
const database = new Database(path)
database.exec('begin immediate')
process.stdout.write('held\n')
await once(process.stdin, 'data')
process.stdin.destroy()
database.exec('rollback')
database.close()
