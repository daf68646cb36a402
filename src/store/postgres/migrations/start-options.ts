/**
 * What `perdure.start` is given, as `start_run` takes it (start.ts): options by the names that `engine.start` has for
 * them. Durations may also be intervals as PostgreSQL reads them. What is wrong is an error that names the option.
 */
export const START_OPTIONS = `
create function perdure.start_options(options json)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $perdure_function$
declare
  run jsonb := '{}';
  option text;
  given jsonb;
  word text;
  problem text;
begin
  if json_typeof(options) not in ('object', 'null') then
    raise exception 'perdure.start: options: they are a JSON object, not of type %', json_typeof(options)
      using errcode = 'invalid_parameter_value';
  end if;
  for option, given in
    select o.key, o.value from jsonb_each(case when json_typeof(options) = 'object' then options::jsonb else '{}' end) o
    where jsonb_typeof(o.value) <> 'null'
  loop
    word := case when jsonb_typeof(given) = 'string' then given#>>'{}' end;
    problem := null;
    case
      when option = 'id' then
        problem := perdure.name_problem(word, 128, false);
        if word like '%~%' then problem := '~ is reserved for the ids of children'; end if;
      when option = 'idempotencyKey' then
        if coalesce(word, '') = '' then problem := 'it takes a text that is not empty'; end if;
      when option in ('dedupId', 'partitionKey') then problem := perdure.name_problem(word, 255, false);
      when option = 'queue' then problem := perdure.name_problem(word, 255, true);
      when option = 'dedupPolicy' then
        if word is null or word not in ('reject', 'returnExisting') then problem := 'it is reject or returnExisting'; end if;
      when option = 'onConflict' then
        if word is null or word not in ('tell', 'raise') then problem := 'it is tell or raise'; end if;
      when option = 'priority' then given := to_jsonb(perdure.whole_number(given));
      when option in ('delay', 'timeout') then given := to_jsonb(perdure.milliseconds(given));
      when option = 'runAt' then given := to_jsonb(perdure.instant(word));
      else
        problem := 'there is no such option. Allowed: id, idempotencyKey, queue, delay, runAt, priority, dedupId, '
          'dedupPolicy, partitionKey, timeout, onConflict';
    end case;
    if problem is not null then raise exception '%', problem using errcode = 'data_exception'; end if;
    run := run || jsonb_build_object(
      case option when 'delay' then 'afterMs' when 'runAt' then 'at' when 'timeout' then 'timeoutMs' else option end, given);
  end loop;
  option := null;
  problem := perdure.start_problem(run);
  if problem is not null then raise exception '%', problem using errcode = 'data_exception'; end if;
  return run;
exception when data_exception or feature_not_supported then
  raise exception 'perdure.start: %', coalesce('option ' || option || ': ', 'options: ') || sqlerrm
    using errcode = 'invalid_parameter_value';
end
$perdure_function$;

-- What no option is by itself.
create function perdure.start_problem(run jsonb)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $perdure_function$
  select case
    when run ? 'id' and run ? 'idempotencyKey' then 'id and idempotencyKey both name the run'
    when run ? 'afterMs' and run ? 'at' then 'delay and runAt both say when'
    when run ? 'dedupPolicy' and not run ? 'dedupId' then 'dedupPolicy says what to do about a dedupId, and none is given'
    when not run ? 'queue' then (
      select o.name || ' is for runs on a queue: give queue, too'
      from (values ('dedupId', 'dedupId'), ('partitionKey', 'partitionKey'), ('delay', 'afterMs'), ('runAt', 'at')) o (name, key)
      where run ? o.key limit 1) end
$perdure_function$;

-- core/names.ts
create function perdure.name_problem(name text, longest integer, own boolean)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $perdure_function$
  select case
    when name is null then 'it takes a text'
    when name = '' then 'it is empty'
    when octet_length(name) > longest then 'it is longer than ' || longest || ' bytes'
    when name ~ '[\\u0001-\\u001f\\u007f-\\u009f]' then 'it contains a control character'
    when own and starts_with(name, 'perdure:') then 'perdure: is reserved for the library itself' end
$perdure_function$;

create function perdure.whole_number(given jsonb)
returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $perdure_function$
begin
  if jsonb_typeof(given) = 'number' and given::numeric = trunc(given::numeric) then return given::numeric::integer; end if;
  raise exception 'it takes a whole number of 32 bits' using errcode = 'data_exception';
end
$perdure_function$;

create function perdure.milliseconds(given jsonb)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $perdure_function$
declare
  found numeric;
begin
  found := ceil(case jsonb_typeof(given)
    when 'number' then given::numeric
    when 'string' then extract(epoch from (given#>>'{}')::interval) * 1000 end);
  if found is null then
    raise exception 'it takes a number of milliseconds, or an interval as text' using errcode = 'data_exception';
  elsif found < 0 then
    raise exception 'it is negative' using errcode = 'data_exception';
  end if;
  return least(found, 8000000000000000);
end
$perdure_function$;

create function perdure.instant(given text)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $perdure_function$
declare
  -- The last that is a Date of JavaScript.
  latest constant bigint := 8640000000000000;
  found bigint;
begin
  found := ceil(extract(epoch from given::timestamptz) * 1000);
  if found is null then
    raise exception 'it takes a point in time as text, such as 2026-11-30T12:00:00Z' using errcode = 'data_exception';
  elsif found > latest then
    raise exception 'it is too far away' using errcode = 'data_exception';
  end if;
  return found;
end
$perdure_function$;
`
