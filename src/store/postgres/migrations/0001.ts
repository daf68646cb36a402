/**
 * Schema version 1. A migration is never edited once released: what it made is out there.
 *
 * `runs` is narrow and hot; what is large or rarely read (inputs, endings, histories) is kept apart, under the run's
 * integer key `seq`. Its partial indexes hold only what can be claimed, counts against a limit, expires or awaits an
 * operator, so that finished runs cost claims nothing. Instants are milliseconds since the epoch.
 *
 * Text is compared by code points (collation "C"), as the other stores do. `queue` is '' for the internal queue.
 */
export const MIGRATION_0001 = `
create sequence perdure.places as bigint;

create table perdure.runs (
  seq bigint primary key,
  id text collate "C" not null unique,
  definition text collate "C" not null,
  kind text,
  queue text collate "C" not null,
  priority bigint not null,
  partition_key text,
  lane text collate "C",
  rank bigint not null,
  dedup_id text collate "C",
  status text collate "C" not null,
  input_hash text,
  due_at bigint,
  token text collate "C",
  owner text collate "C",
  lease_until bigint,
  epoch integer not null,
  version text collate "C",
  parent_id text collate "C",
  deliveries integer not null,
  attempt integer not null,
  crashes integer not null,
  max_recoveries bigint not null,
  timeout_ms bigint,
  deadline_at bigint,
  cancel_requested boolean not null,
  created_at bigint not null,
  started_at bigint,
  ended_at bigint,
  failure_kind text,
  start_id text not null,
  operation_id text
);
create index runs_claimable on perdure.runs (queue, lane, definition, rank, seq, version)
  where status = 'ENQUEUED' and lane is not null;
create index runs_keyless on perdure.runs (queue, status) where lane is null and status in ('ENQUEUED', 'DELAYED');
create index runs_delayed on perdure.runs (queue, definition, due_at, seq)
  where status = 'DELAYED' and lane is not null;
create index runs_suspended on perdure.runs (queue, definition, due_at, seq)
  where status = 'WAITING' and due_at is not null and lane is not null;
create index runs_active on perdure.runs (queue, lane, status)
  where queue <> '' and status in ('PENDING', 'WAITING');
create index runs_leases on perdure.runs (lease_until) where status = 'PENDING';
create unique index runs_claims on perdure.runs (owner, token) where status = 'PENDING';
create unique index runs_dedup on perdure.runs (queue, dedup_id)
  where dedup_id is not null and status in ('ENQUEUED', 'DELAYED', 'PENDING', 'WAITING');
create index runs_children on perdure.runs (parent_id)
  where parent_id is not null and status in ('ENQUEUED', 'DELAYED', 'PENDING', 'WAITING');
create index runs_ended on perdure.runs (definition, queue, status, ended_at) where ended_at is not null;
create index runs_listed on perdure.runs (definition, queue, status, seq);
create index runs_cancels on perdure.runs (owner) where status = 'PENDING' and cancel_requested;

create table perdure.inputs (run bigint primary key, input text not null);
create table perdure.endings (run bigint primary key, output text, error text);

create table perdure.checkpoints (
  run bigint not null,
  seq integer not null,
  type text not null,
  position bigint not null,
  verb text not null,
  name text not null,
  failed boolean not null,
  value text,
  calls bigint not null,
  delivered bigint not null,
  notes text,
  recorded_at bigint not null,
  attempts bigint not null,
  primary key (run, seq)
);

create table perdure.past_checkpoints (
  run bigint not null,
  epoch integer not null,
  seq integer not null,
  type text not null,
  position bigint not null,
  verb text not null,
  name text not null,
  failed boolean not null,
  value text,
  calls bigint not null,
  delivered bigint not null,
  notes text,
  recorded_at bigint not null,
  attempts bigint not null,
  primary key (run, epoch, seq)
);

create table perdure.attempts (
  run bigint not null,
  number integer not null,
  epoch integer not null,
  attempt integer not null,
  outcome text not null,
  owner text,
  started_at bigint,
  ended_at bigint,
  failure_kind text,
  primary key (run, number)
);

create table perdure.processes (
  owner text collate "C" primary key,
  host text not null,
  pid bigint not null,
  pid_start text,
  boot_id text,
  pid_namespace text,
  definitions text not null,
  queues text not null,
  version text,
  registered_at bigint not null
);

create table perdure.queues (
  name text collate "C" primary key,
  global_concurrency bigint,
  release_while_waiting boolean not null,
  rate_limit bigint,
  rate_period_ms bigint,
  priority_enabled boolean not null,
  partitioned boolean not null,
  retention text,
  paused boolean not null,
  config_version bigint not null,
  updated_at bigint not null
);

create table perdure.starts (
  queue text collate "C" not null,
  lane text collate "C" not null,
  number bigint not null,
  started_at bigint not null,
  primary key (queue, lane, number)
);

create table perdure.lanes (
  queue text collate "C" not null,
  lane text collate "C" not null,
  definition text collate "C" not null,
  version text collate "C" not null,
  place bigint not null,
  ready_at bigint,
  primary key (queue, lane, definition, version)
);
create index lanes_ready on perdure.lanes (queue, definition, version, place) where ready_at = 0;
create index lanes_closed on perdure.lanes (queue, ready_at) where ready_at > 0;

create table perdure.waits (
  run bigint not null,
  position bigint not null,
  type text not null,
  key text collate "C" not null,
  state text not null,
  payload text,
  primary key (run, position, type, key)
);
create index waits_open on perdure.waits (key) where type = 'signal' and state = 'open';
create index waits_runs on perdure.waits (key) where type = 'child';

create table perdure.signals (key text collate "C" primary key, payload text not null);
create table perdure.kv (key text collate "C" primary key, value text not null, hash text not null);
create table perdure.receipts (
  command_id text collate "C" primary key,
  outcome text not null,
  given_at bigint not null
);
create index receipts_given on perdure.receipts (given_at);
`
