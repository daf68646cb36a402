/** The options of a start. */
import { type Duration, toMs } from '../core/duration.ts'
import { checkOptions } from '../core/options.ts'
import { checkNewRunId } from './names.ts'

export interface StartOptions {
  /**
   * The run's id: 1 to 128 bytes of text without control characters and `~`. An id that exists gives the handle of the
   * existing run (`newlySubmitted: false`), if definition and input are the same. Default: a new UUIDv7.
   */
  readonly id?: string
  /** For the whole run, from its first claim; overrides the definition's. When it is over, the run is CANCELLED. */
  readonly timeout?: Duration
}

export interface CheckedStart {
  readonly id: string | undefined
  readonly timeoutMs: number | undefined
}

const NO_OPTIONS: CheckedStart = { id: undefined, timeoutMs: undefined }

/** @throws ConfigurationError, InvalidIdError, InvalidDurationError */
export function checkStart(options: StartOptions | undefined): CheckedStart {
  if (options === undefined) return NO_OPTIONS
  checkOptions('start', options, ['id', 'timeout'])
  if (options.id !== undefined) checkNewRunId(options.id)
  const { id, timeout } = options
  return { id, timeoutMs: timeout === undefined ? undefined : toMs(timeout, 'start.timeout') }
}
