/** The versions that runs which may be claimed are bound to. */
import { text } from '../columns.ts'
import type { Database } from './database.ts'

const CLAIMABLE = `r.version is not null and r.status <> 'PENDING' and r.ended_at is null`

/** A table \`versions\` of them, for a recursive WITH; null comes last. Looks at each version once, not at its runs. */
export const VERSIONS = `versions (version) as (
  select (select r.version from perdure_runs r indexed by perdure_runs_versions where ${CLAIMABLE}
    order by r.version limit 1)
  union all
  select (select r.version from perdure_runs r indexed by perdure_runs_versions
    where ${CLAIMABLE} and r.version > versions.version order by r.version limit 1)
  from versions where versions.version is not null)`

export const LIVE_VERSIONS = `with recursive ${VERSIONS} select version from versions where version is not null`

export function liveVersions(database: Database): readonly string[] {
  return database
    .prepare(LIVE_VERSIONS)
    .all()
    .map((row) => text(row[0]))
}
