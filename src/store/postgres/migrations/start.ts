/**
 * Starting a run inside the caller's own transaction, from any language (docs/transactions.md).
 *
 * `start_run` takes what the library has prepared (start-sql.ts), as JSON; `start_runs` takes many, and starts all of
 * them or none; `start` is for people, and prepares the same. A start does what one through the library does
 * (store/apply/enqueue.ts), with three differences, as the caller's transaction may stay open for long:
 *
 * - No row is locked that others need. What a run derives from its queue is looked up, and looked up once more when the
 *   caller commits (`place_at_commit`): only from there on the row of the queue is locked FOR KEY SHARE, so whoever
 *   changes the queue either is seen, or sees the run. A queue that is not registered has its name locked instead
 *   (queues.ts). At REPEATABLE READ, which can't see what has changed, the commit then fails with a serialization failure.
 * - A run of a partitioned queue is stored DELAYED, and due: the claim that promotes it lists its lane. A row of
 *   `lanes` that was added here would keep every other start in that lane waiting for the caller's commit, and two
 *   callers who start runs in two lanes, in different order, would be a deadlock.
 * - The row is inserted first, and what is there already is looked at only where the insert has met it. So of two
 *   SERIALIZABLE transactions neither has read what the other writes, unless they start the same run.
 *
 * They wait, like any insert of a taken key, for another transaction that is about to start a run of the same id. The
 * `search_path` is set, as a function is called under whatever its caller has.
 */
import { START_OPTIONS } from './start-options.ts'

const START_RUN = `
create function perdure.start_run(run text)
returns table (id text, newly_submitted boolean, conflict text, status text, definition text, caveat text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $perdure_function$
#variable_conflict use_column
declare
  asked constant jsonb := run::jsonb;
  new_id constant text := asked->>'id';
  new_queue constant text := coalesce(asked->>'queue', '');
  key constant text := asked->>'partitionKey';
  new_priority constant bigint := coalesce((asked->>'priority')::bigint, 0);
  dedup constant text := asked->>'dedupId';
  spot record;
  moment bigint;
  due bigint;
  new_seq bigint;
  known record;
begin
  newly_submitted := false;
  select * into spot from perdure.place_in_queue(new_queue, key, new_priority);
  loop
    moment := coalesce((asked->>'now')::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
    due := coalesce((asked->>'at')::bigint, moment + (asked->>'afterMs')::bigint);
    if due <= moment then due := null; end if;
    if spot.partitioned and key is not null then due := coalesce(due, moment); end if;
    status := case when due is null then 'ENQUEUED' else 'DELAYED' end;
    insert into perdure.runs as r (seq, id, definition, kind, queue, priority, partition_key, lane, rank, dedup_id, status,
      input_hash, due_at, epoch, deliveries, attempt, crashes, max_recoveries, timeout_ms, cancel_requested, created_at,
      start_id)
    values (nextval('perdure.places'), new_id, asked->>'definition', asked->>'kind', new_queue, new_priority, key,
      spot.lane, spot.rank, dedup, status, asked->>'inputHash', due, 0, 0, 0, 0,
      coalesce((asked->>'maxRecoveries')::bigint, 50), (asked->>'timeoutMs')::bigint, false, moment,
      'tx:' || coalesce(asked->>'startId', new_id))
    on conflict do nothing returning r.seq into new_seq;
    newly_submitted := found;
    exit when newly_submitted;

    select r.id, r.status, r.definition, r.input_hash, i.input into known
    from perdure.runs r left join perdure.inputs i on i.run = r.seq where r.id = new_id;
    if found then
      if known.definition <> asked->>'definition' or not coalesce(
        perdure.same_input(known.input, known.input_hash, asked->>'input', asked->>'inputHash'), false)
      then conflict := 'mismatch'; end if;
      exit;
    end if;
    select r.id, r.status, r.definition into known from perdure.runs r
    where r.queue = new_queue and r.dedup_id = dedup and r.status in ('ENQUEUED', 'DELAYED', 'PENDING', 'WAITING');
    if found then
      if coalesce(asked->>'dedupPolicy', 'reject') = 'reject' then conflict := 'deduplicated'; end if;
      exit;
    end if;
  end loop;

  if newly_submitted then
    insert into perdure.inputs (run, input) values (new_seq, asked->>'input');
    insert into perdure.kv (key, value, hash)
      select p->>'key', p->>'value', p->>'hash' from jsonb_array_elements(asked->'kv') p order by (p->>'key') collate "C"
      on conflict (key) do update set value = excluded.value, hash = excluded.hash;
    if asked->>'channel' is not null then perform pg_notify(asked->>'channel', ''); end if;
    id := new_id;
    definition := asked->>'definition';
    caveat := spot.caveat;
  else
    id := known.id;
    status := known.status;
    definition := known.definition;
    if conflict is not null and asked->>'onConflict' = 'raise' then
      raise exception 'perdure: run % was not started: %', new_id, case conflict
        when 'mismatch' then 'its id exists under another definition or with another input'
        else format('its deduplication id %L is held by run %s', dedup, id) end
        using errcode = 'unique_violation', hint = 'Give another id, or leave onConflict out and look at the answer.';
    end if;
  end if;
  return next;
end
$perdure_function$;

create function perdure.same_input(known text, known_hash text, given text, given_hash text)
returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $perdure_function$
begin
  if known_hash is not null and given_hash is not null then return known_hash = given_hash; end if;
  return known = given or known::jsonb = given::jsonb;
exception when data_exception then
  -- A text that jsonb can't hold (an escaped NUL) is compared as it is.
  return known = given;
end
$perdure_function$;
`

/** store/transitions.ts, `placeInQueue`, and store/caveat.ts, for the queue as it is. */
const PLACE_IN_QUEUE = `
create function perdure.place_in_queue(queue text, key text, priority bigint)
returns table (partitioned boolean, lane text, rank bigint, caveat text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $perdure_function$
#variable_conflict use_variable
declare
  registered boolean;
  by_priority boolean;
begin
  select true, q.partitioned, q.priority_enabled into registered, partitioned, by_priority
  from perdure.queues q where q.name = queue;
  registered := coalesce(registered, queue = '');
  partitioned := coalesce(partitioned, false);
  by_priority := coalesce(by_priority, false);
  lane := case when partitioned then key else '' end;
  rank := case when by_priority then priority else 0 end;
  if registered then
    caveat := case
      when partitioned and key is null then 'keyless'
      when not partitioned and key is not null and queue <> '' then 'partitionKeyIgnored'
      when not by_priority and priority <> 0 then 'priorityIgnored' end;
  end if;
  return next;
end
$perdure_function$;
`

/**
 * Fired by the commit of a caller's transaction, once for each run that it has started on a queue. It may be another
 * role that commits than the one that started.
 */
const PLACE_AT_COMMIT = `
create function perdure.place_at_commit()
returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $perdure_function$
declare
  spot record;
begin
  perform 1 from perdure.queues q where q.name = new.queue for key share;
  if not found then
    -- Whoever registers it waits for this lock, or has done so, which a statement that begins now can see.
    perform pg_advisory_xact_lock_shared(hashtextextended('perdure queue ' || new.queue, 0));
    perform 1 from perdure.queues q where q.name = new.queue for key share;
    if not found and current_setting('transaction_isolation') <> 'read committed' then
      perform perdure.assert_unregistered(new.queue);
    end if;
  end if;
  select * into spot from perdure.place_in_queue(new.queue, new.partition_key, new.priority);
  if spot.lane is distinct from new.lane or spot.rank <> new.rank then
    update perdure.runs r set lane = spot.lane, rank = spot.rank,
      status = case when spot.partitioned and spot.lane is not null then 'DELAYED' else r.status end,
      due_at = case when spot.partitioned and spot.lane is not null then coalesce(r.due_at, r.created_at) else r.due_at end
    where r.seq = new.seq and r.status in ('ENQUEUED', 'DELAYED');
  end if;
  return null;
end
$perdure_function$;
create constraint trigger place_at_commit after insert on perdure.runs deferrable initially deferred
  for each row when (new.queue <> '' and starts_with(new.start_id, 'tx:')) execute function perdure.place_at_commit();

create function perdure.assert_unregistered(queue text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $perdure_function$
begin
  -- It fails with a serialization failure for a row that the snapshot of this transaction is too old to show.
  insert into perdure.queues (name, release_while_waiting, priority_enabled, partitioned, paused, config_version, updated_at)
  values (queue, false, false, false, false, 0, 0)
  on conflict do nothing;
  raise exception 'undone' using errcode = 'PERDU';
exception when sqlstate 'PERDU' then
  return;
end
$perdure_function$;
`

/** `runs`: a JSON array. Stops at the first that is refused, which is its last answer; then none is started. */
const START_RUNS = `
create function perdure.start_runs(runs text)
returns table (id text, newly_submitted boolean, conflict text, status text, definition text, caveat text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $perdure_function$
#variable_conflict use_column
declare
  asked jsonb;
  -- What was asked for and is there under another id, that of the holder of its deduplication id.
  held jsonb := '{}';
  earlier jsonb;
begin
  for asked in select e.value from jsonb_array_elements(runs::jsonb) with ordinality e (value, n) order by e.n loop
    earlier := held->(asked->>'id');
    if earlier is null then
      select s.id, s.newly_submitted, s.conflict, s.status, s.definition, s.caveat
      into id, newly_submitted, conflict, status, definition, caveat
      from perdure.start_run(asked::text) s;
      if id <> asked->>'id' then
        held := held || jsonb_build_object(asked->>'id', jsonb_build_object(
          'holder', id, 'definition', asked->>'definition', 'inputHash', asked->>'inputHash'));
      end if;
    else
      select r.id, false, r.status, r.definition, null into id, newly_submitted, status, definition, caveat
      from perdure.runs r where r.id = earlier->>'holder';
      if earlier->>'definition' <> asked->>'definition' or earlier->>'inputHash' <> asked->>'inputHash' then
        conflict := 'mismatch';
        definition := earlier->>'definition';
      end if;
    end if;
    return next;
    if conflict is not null then raise exception 'refused' using errcode = 'PERDU'; end if;
  end loop;
exception when sqlstate 'PERDU' then
  return;
end
$perdure_function$;
`

/**
 * For people and triggers. `name` is that of a definition. It acts with the rights of its owner, so that those who are
 * granted it need none on the tables; nobody is, until the owner says so.
 */
const START = `
create function perdure.start(name text, input json default null, options json default null)
returns table (id text, newly_submitted boolean, conflict text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $perdure_function$
#variable_conflict use_column
declare
  given constant jsonb := perdure.start_options(options);
  problem constant text := perdure.name_problem(name, 255, true);
begin
  if problem is not null then
    raise exception 'perdure.start: name: %', problem using errcode = 'invalid_parameter_value';
  end if;
  return query select s.id, s.newly_submitted, s.conflict from perdure.start_run((given || jsonb_build_object(
    'definition', name,
    'id', coalesce(
      given->>'id',
      encode(sha256(convert_to('["run",' || to_json(name)::text || ',' || to_json(given->>'idempotencyKey')::text || ']',
        'UTF8')), 'hex'),
      perdure.new_run_id()),
    -- The codec's text of undefined.
    'input', coalesce(input::text, '{"$perdure":1,"value":{"t":2,"s":1}}'),
    'channel', (select m.value from perdure.meta m where m.name = 'channel')))::text) s;
end
$perdure_function$;
revoke execute on function perdure.start(text, json, json) from public;

create function perdure.new_run_id()
returns text
language sql volatile
set search_path = pg_catalog, pg_temp
as $perdure_function$
  -- A UUID of version 7: that of version 4 with the time in front.
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid::text
$perdure_function$;
`

export const START_FUNCTIONS = START_RUN + PLACE_IN_QUEUE + PLACE_AT_COMMIT + START_RUNS + START + START_OPTIONS
