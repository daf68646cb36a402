/** Opens and uses a store, watches it, and leaves: nothing is left to do, so the process is to end by itself. */
import { postgres } from '../../../../src/store/postgres/index.ts'

const [url = '', schema = ''] = process.argv.slice(2)
const store = postgres(url, { schema })
await store.open()
store.watch(() => {})
const kv = { type: 'put', key: 'a', value: '1', hash: '1' } as const
const [outcome] = await store.commit([{ type: 'kv', commandId: 'c', change: kv }])
await Promise.all(Array.from({ length: 5 }, () => store.values(['a'])))
process.stdout.write(outcome?.type ?? 'nothing')
