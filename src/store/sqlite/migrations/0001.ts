/**
 * Schema version 1. A migration is never edited once released: what it made is out there.
 *
 * `perdure_runs` is narrow and hot; what is large or rarely read (inputs, endings, histories) is kept apart, under
 * the run's integer key `seq`. Its partial indexes hold only what can be claimed, expires or awaits an operator, so
 * that finished runs cost claims nothing. Instants are milliseconds since the epoch.
 */
export const MIGRATION_0001 = `
create table perdure_runs (
  seq integer primary key,
  id text not null unique,
  definition text not null,
  kind text not null,
  queue text,
  status text not null,
  input_hash text not null,
  due_at integer,
  token text,
  owner text,
  lease_until integer,
  epoch integer not null,
  deliveries integer not null,
  attempt integer not null,
  crashes integer not null,
  max_recoveries integer not null,
  timeout_ms integer,
  deadline_at integer,
  cancel_requested integer not null,
  created_at integer not null,
  started_at integer,
  ended_at integer,
  failure_kind text,
  start_id text not null,
  operation_id text
);
create index perdure_runs_enqueued on perdure_runs (definition) where status = 'ENQUEUED' and queue is null;
create index perdure_runs_due on perdure_runs (definition, due_at) where status = 'WAITING' and queue is null;
create index perdure_runs_leases on perdure_runs (lease_until) where status = 'PENDING';
create index perdure_runs_claims on perdure_runs (owner, token) where status = 'PENDING';
create index perdure_runs_cancels on perdure_runs (owner) where status = 'PENDING' and cancel_requested = 1;
create index perdure_runs_resting on perdure_runs (status) where status not in ('SUCCESS', 'PENDING');
create index perdure_runs_definitions on perdure_runs (definition);

create table perdure_inputs (run integer primary key, input text not null);
create table perdure_endings (run integer primary key, output text, error text);

create table perdure_checkpoints (
  run integer not null,
  seq integer not null,
  type text not null,
  position integer not null,
  verb text not null,
  name text not null,
  failed integer not null,
  value text,
  calls integer not null,
  delivered integer not null,
  notes text,
  recorded_at integer not null,
  attempts integer not null,
  primary key (run, seq)
) without rowid;

create table perdure_past_checkpoints (
  run integer not null,
  epoch integer not null,
  seq integer not null,
  type text not null,
  position integer not null,
  verb text not null,
  name text not null,
  failed integer not null,
  value text,
  calls integer not null,
  delivered integer not null,
  notes text,
  recorded_at integer not null,
  attempts integer not null,
  primary key (run, epoch, seq)
) without rowid;

create table perdure_attempts (
  run integer not null,
  number integer not null,
  epoch integer not null,
  attempt integer not null,
  outcome text not null,
  owner text,
  started_at integer,
  ended_at integer,
  failure_kind text,
  primary key (run, number)
) without rowid;

create table perdure_processes (
  owner text primary key,
  host text not null,
  pid integer not null,
  pid_start text,
  boot_id text,
  pid_namespace text,
  registered_at integer not null
) without rowid;
`
