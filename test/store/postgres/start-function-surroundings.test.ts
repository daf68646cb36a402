/** perdure.start in triggers, for other roles, under other search paths, in schemas of any name. */
import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { sha256Hex } from '../../../src/core/ids.ts'
import { startSchema } from './start-schema.ts'

test('in a trigger: with the row, or not at all', async () => {
  const schema = await startSchema()
  await schema.run('create table perdure.orders (id bigint primary key, email text)')
  await schema.run(`
      create function perdure.order_placed() returns trigger language plpgsql as $$
      begin
        perform perdure.start('confirm', to_json(new), json_build_object('queue', 'mail', 'idempotencyKey', new.id::text));
        return new;
      end $$`)
  await schema.run(
    'create trigger placed after insert on perdure.orders for each row execute function perdure.order_placed()',
  )
  await schema.run(`insert into perdure.orders select n, n || '@example.com' from generate_series(1, 50) n`)
  const caller = await schema.session()
  await caller.run('begin')
  await caller.run(`insert into perdure.orders values (51, 'gone@example.com')`)
  await caller.run('rollback')
  const rows = await schema.run(
    'select r.id, r.queue, i.input from perdure.runs r join perdure.inputs i on i.run = r.seq order by r.seq',
  )
  expect(rows).toHaveLength(50)
  expect(rows[1]).toEqual({
    id: sha256Hex('["run","confirm","2"]'),
    queue: 'mail',
    input: '{"id":2,"email":"2@example.com"}',
  })
})

test('as docs/transactions.md has it', async () => {
  const schema = await startSchema()
  const caller = await schema.session()
  const [name, role] = [`"${schema.schema}"`, `"web of ${schema.schema}"`]
  await caller.run(`create role ${role}`)
  onTestFinished(async () => {
    await schema.run(`drop owned by ${role}`)
    await schema.run(`drop role ${role}`)
  })
  await caller.run(`set search_path = ${name}`)
  await caller.run('create table orders (id bigint, email text)')
  const page = await readFile(new URL('../../../docs/transactions.md', import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/```sql\n(?<sql>[^`]*)```/g)].map(({ groups }) => groups?.['sql'] ?? '')
  expect(blocks).toHaveLength(3)
  for (const block of blocks) {
    await caller.client.query(
      schema.database
        .render(block.replaceAll('schema perdure to web', `schema ${name} to web`))
        .replaceAll('to web', `to ${role}`),
    )
  }
  await caller.run(`insert into orders values (43, 'ada@example.com')`)
  const rows = await schema.run(
    'select i.input from perdure.runs r join perdure.inputs i on i.run = r.seq order by seq',
  )
  expect(rows).toEqual([{ input: '42' }, { input: '{"id":43,"email":"ada@example.com"}' }])
})

test('under a search_path that leads elsewhere', async () => {
  const schema = await startSchema()
  await schema.register({ name: 'tenants', partitioned: true, priorityEnabled: true })
  const caller = await schema.session()
  const evil = `"evil ${schema.schema}"`
  onTestFinished(async () => {
    await schema.run(`drop schema ${evil} cascade`)
  })
  for (const statement of hostile(evil)) await caller.client.query(statement)
  const [answer] = await caller.run(
    `select * from perdure.start('greet', '{"a":1}', '{"id":"a","queue":"tenants","partitionKey":"k","priority":3,"timeout":"5m"}')`,
  )
  expect(answer).toEqual({ id: 'a', newly_submitted: true, conflict: null })
  const [known] = await caller.run(`select * from perdure.start('greet', '{"a": 1}', '{"id":"a"}')`)
  expect(known).toEqual({ id: 'a', newly_submitted: false, conflict: null })
  await caller.run('set search_path = pg_catalog')
  expect(await schema.run('select lane, rank, timeout_ms from perdure.runs')).toEqual([
    { lane: 'k', rank: '3', timeout_ms: '300000' },
  ])
  await caller.run(`set search_path = ''`)
  const [other] = await caller.run(`select * from perdure.start('greet')`)
  expect(other).toMatchObject({ newly_submitted: true })
  expect((await caller.run('show search_path'))[0]).toEqual({ search_path: '""' })
})

test('by a role that has been granted it, and by no other', async () => {
  const schema = await startSchema()
  const caller = await schema.session()
  const role = `"web ${schema.schema}"`
  await caller.run(`create role ${role}`)
  await caller.run(`grant usage on schema "${schema.schema}" to ${role}`)
  onTestFinished(async () => {
    await schema.run(`drop owned by ${role}`)
    await schema.run(`drop role ${role}`)
  })
  await caller.run(`set role ${role}`)
  const denied = { code: '42501', message: 'permission denied for function start' }
  await expect(caller.run(`select * from perdure.start('greet')`)).rejects.toMatchObject(denied)
  await schema.run(`grant execute on function perdure.start to ${role}`)
  const [answer] = await caller.run(`select * from perdure.start('greet', '1', '{"queue":"mail","dedupId":"d"}')`)
  expect(answer).toMatchObject({ newly_submitted: true })
  await expect(caller.run('select * from perdure.runs')).rejects.toMatchObject({ code: '42501' })
  await expect(caller.run(`select * from perdure.start_run('{"id":"a"}')`)).rejects.toMatchObject({ code: '42501' })
})

test.each(['we"ird', `it's`, 'select', 'My-Schema', 'perdure.x', 'a$$b', 'a?b', 'back\\slash', '$1', 'x'.repeat(63)])(
  'in a schema named %s',
  async (name) => {
    const schema = await startSchema({ schema: name })
    await schema.register({ name: 'mail' })
    const start = `select newly_submitted, conflict from perdure.start('greet', '1', $1)`
    const options = { queue: 'mail', dedupId: 'd' }
    expect(await schema.run(start, JSON.stringify({ id: 'a', ...options }))).toEqual([
      { newly_submitted: true, conflict: null },
    ])
    expect(await schema.run(start, JSON.stringify({ id: 'b', ...options }))).toEqual([
      { newly_submitted: false, conflict: 'deduplicated' },
    ])
    expect(await schema.run('select seq from perdure.runs')).toEqual([{ seq: '1' }])
  },
)

/** What a session may find before pg_catalog: functions, operators and tables of the same names. */
const hostile = (evil: string): readonly string[] => [
  `create schema ${evil}`,
  `create function ${evil}.no(text, text) returns boolean language sql as 'select false'`,
  `create function ${evil}.nothing(jsonb, text) returns text language sql as 'select null::text'`,
  `create operator ${evil}.= (leftarg = text, rightarg = text, function = ${evil}.no)`,
  `create operator ${evil}.<> (leftarg = text, rightarg = text, function = ${evil}.no)`,
  `create operator ${evil}.->> (leftarg = jsonb, rightarg = text, function = ${evil}.nothing)`,
  `create function ${evil}.clock_timestamp() returns timestamptz language sql as $$select '2000-01-01'::timestamptz$$`,
  `create function ${evil}.octet_length(text) returns integer language sql as 'select 1000000'`,
  `create function ${evil}.nextval(regclass) returns bigint language sql as 'select -1::bigint'`,
  `create function ${evil}.pg_notify(text, text) returns void language sql as 'select 1 / 0'`,
  `create domain ${evil}.jsonb as text`,
  `create domain ${evil}.bigint as text`,
  `create temporary table runs (id text)`,
  `create temporary table queues (name text)`,
  `set search_path = ${evil}, pg_temp, pg_catalog`,
]
