/**
 * Schema version 2: queues, signals, children, the KV space and retention.
 *
 * What waits to be claimed is indexed as lists: of each queue, lane, definition and version apart, in the order in
 * which runs are claimed. A claimant so finds the head of each list it serves, and never looks at others.
 *
 * `kind` is '' where it is not known yet, as version 1 declared it not null.
 *
 * `perdure_runs_active` counts against the limits of queues; it leaves out the internal queue, which has none.
 */
export const MIGRATION_0002 = `
alter table perdure_runs add column priority integer not null default 0;
alter table perdure_runs add column partition_key text;
alter table perdure_runs add column lane text default '';
alter table perdure_runs add column rank integer not null default 0;
alter table perdure_runs add column dedup_id text;
alter table perdure_runs add column version text;
alter table perdure_runs add column parent_id text;

drop index perdure_runs_enqueued;
drop index perdure_runs_due;
create index perdure_runs_claimable on perdure_runs (queue, lane, definition, version, rank)
  where status = 'ENQUEUED' and lane is not null;
create index perdure_runs_keyless on perdure_runs (queue, status)
  where lane is null and status in ('ENQUEUED', 'DELAYED');
create index perdure_runs_delayed on perdure_runs (queue, definition, version, due_at)
  where status = 'DELAYED' and lane is not null;
create index perdure_runs_suspended on perdure_runs (queue, lane, definition, version, due_at)
  where status = 'WAITING' and due_at is not null and lane is not null;
create index perdure_runs_active on perdure_runs (queue, lane, status)
  where queue is not null and status in ('PENDING', 'WAITING');
create index perdure_runs_versions on perdure_runs (version)
  where version is not null and status in ('ENQUEUED', 'DELAYED', 'WAITING');
create unique index perdure_runs_dedup on perdure_runs (queue, dedup_id)
  where dedup_id is not null and status in ('ENQUEUED', 'DELAYED', 'PENDING', 'WAITING');
create index perdure_runs_children on perdure_runs (parent_id)
  where parent_id is not null and status in ('ENQUEUED', 'DELAYED', 'PENDING', 'WAITING');
create index perdure_runs_ended on perdure_runs (definition, queue, status, ended_at) where ended_at is not null;
create index perdure_runs_queues on perdure_runs (queue) where queue is not null;

create table perdure_queues (
  name text primary key,
  global_concurrency integer,
  release_while_waiting integer not null,
  rate_limit integer,
  rate_period_ms integer,
  priority_enabled integer not null,
  partitioned integer not null,
  retention text,
  paused integer not null,
  config_version integer not null,
  updated_at integer not null,
  turns integer not null default 0
) without rowid;

create table perdure_starts (
  queue text not null,
  lane text not null,
  number integer not null,
  started_at integer not null,
  primary key (queue, lane, number)
) without rowid;

create table perdure_lanes (
  queue text not null,
  lane text not null,
  work text not null,
  definition text not null,
  version text not null,
  place integer not null,
  run integer not null,
  ready_at integer,
  full_for text not null,
  primary key (queue, lane, work, definition, version)
) without rowid;
create index perdure_lanes_ready on perdure_lanes (queue, work, definition, version, full_for, ready_at, place, run)
  where ready_at is not null;
create index perdure_lanes_full on perdure_lanes (full_for) where full_for <> '';

create table perdure_waits (
  run integer not null,
  position integer not null,
  type text not null,
  key text not null,
  state text not null,
  payload text,
  primary key (run, position, type)
) without rowid;
create index perdure_waits_open on perdure_waits (key) where type = 'signal' and state = 'open';
create index perdure_waits_runs on perdure_waits (key) where type = 'child';

create table perdure_signals (key text not null unique, payload text not null);
create table perdure_kv (key text not null unique, value text not null, hash text not null);
create table perdure_receipts (
  number integer primary key,
  command_id text not null unique,
  outcome text not null,
  given_at integer not null
);

alter table perdure_processes add column definitions text not null default '[]';
alter table perdure_processes add column queues text not null default '[]';
alter table perdure_processes add column version text;
`
