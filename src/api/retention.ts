/** `retention`: how long runs are kept after their end. */
import { type Duration, toWholeMs } from '../core/duration.ts'
import { checkOptions } from '../core/options.ts'
import type { Retention } from '../store/records.ts'

/**
 * How long runs that have ended are kept, with their history and result, by how they ended: a duration of at least
 * 1 ms, or `'forever'`. What is unset is kept for ever.
 */
export type RetentionOption =
  | 'forever'
  | {
      readonly success?: Duration | 'forever'
      readonly error?: Duration | 'forever'
      readonly dead?: Duration | 'forever'
      readonly cancelled?: Duration | 'forever'
    }

const FOREVER: Retention = { success: null, error: null, dead: null, cancelled: null }

/** @throws ConfigurationError, InvalidDurationError */
export function retentionOf(option: string, given: RetentionOption): Retention {
  if (given === 'forever') return FOREVER
  checkOptions(option, given, Object.keys(FOREVER))
  const kept = (status: keyof Retention): number | null => {
    const duration = given[status]
    if (duration === undefined || duration === 'forever') return null
    return toWholeMs(duration, `${option}.${status}`, 1)
  }
  return { success: kept('success'), error: kept('error'), dead: kept('dead'), cancelled: kept('cancelled') }
}
