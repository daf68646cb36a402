/**
 * Schema version 3: as few B-trees as can be on the way of a run, since each costs it time and a page of every commit.
 *
 * Small inputs and outputs are in the row itself; others stay in tables of their own, as do those that were written
 * before. `perdure_runs_listed` never changes after the insert. Live claims are few, so they are walked for the lease
 * that ends first and for requests to cancel. ENQUEUED runs are in the index that they are claimed by, and only there.
 *
 * What may change a run looks at the condition of each index. So no condition is an `in` of more than two values, for
 * which SQLite would fill a table of its own each time (half of what a statement cost), and none is about the status
 * where one about `ended_at` does as well: no claim changes that.
 */
export const MIGRATION_0003 = `
alter table perdure_runs add column input text;
alter table perdure_runs add column output text;

drop index perdure_runs_definitions;
drop index perdure_runs_queues;
create index perdure_runs_listed on perdure_runs (definition, queue);

drop index perdure_runs_leases;
drop index perdure_runs_cancels;
drop index perdure_runs_claims;
create index perdure_runs_claims on perdure_runs (owner, token, lease_until, cancel_requested) where status = 'PENDING';

drop index perdure_runs_resting;
create index perdure_runs_resting on perdure_runs (status)
  where status <> 'ENQUEUED' and status <> 'PENDING' and status <> 'SUCCESS';
drop index perdure_runs_versions;
create index perdure_runs_versions on perdure_runs (version)
  where version is not null and status <> 'PENDING' and ended_at is null;
drop index perdure_runs_dedup;
create unique index perdure_runs_dedup on perdure_runs (queue, dedup_id) where dedup_id is not null and ended_at is null;
drop index perdure_runs_children;
create index perdure_runs_children on perdure_runs (parent_id) where parent_id is not null and ended_at is null;
`
