/** Who is cancelled together with a run. */

/**
 * A common table `family (id, found, goes)` of the runs that the parameter of this number gives and their descendants that
 * have not ended (`found`). One that is PENDING is only asked to end, so its own are left alone (`goes`: it may end).
 */
export function FAMILY(parameter: number): string {
  return `
family (id, found, goes) as (
  select c.id collate "C", false, true from unnest($${parameter}::text[]) as c (id)
  union
  select c.id, true, c.status <> 'PENDING' from family f cross join lateral (
    select r.id, r.status from perdure.runs r
    where r.parent_id = f.id and r.status in ('ENQUEUED', 'DELAYED', 'PENDING', 'WAITING') offset 0) c
  where f.goes)`
}
