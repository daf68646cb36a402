/** What all errors of the library have in common. core/errors.ts has the classes. */
import { ERROR_TABLE, type ErrorCode, type ErrorFields, isErrorCode } from './error-table.ts'

const DOCS_PAGE = 'docs/errors.md'

/** The base of all errors that the library throws. */
export abstract class PerdureError<Code extends ErrorCode = ErrorCode> extends Error {
  /** The code that the class stands for; undefined for the base, which stands for all. */
  static readonly code: ErrorCode | undefined = undefined

  /** Stable: the class's name without 'Error', in capitals. */
  readonly code: Code
  /** True if the same call, made again later, may succeed. */
  readonly retryable: boolean
  /** Where the error is explained. */
  readonly docs: string

  constructor(code: Code, fields: ErrorFields[Code], options?: ErrorOptions) {
    super(messageOf(code, fields), options)
    this.code = code
    this.retryable = ERROR_TABLE[code].retryable
    this.docs = docsOf(code)
    Object.assign(this, fields)
  }

  /** True for an error of this class, or of the same class in another copy of the package. */
  static is<T extends PerdureError>(this: ErrorType<T>, error: unknown): error is T {
    const code = codeOf(error)
    // biome-ignore lint/complexity/noThisInStatic: each class inherits this method and answers for itself.
    return code !== undefined && (this.code === undefined || this.code === code)
  }
}

type ErrorType<T> = (abstract new (...args: never[]) => T) & { readonly code: ErrorCode | undefined }

function messageOf<Code extends ErrorCode>(code: Code, fields: ErrorFields[Code]): string {
  return ERROR_TABLE[code].message(fields)
}

function docsOf(code: ErrorCode): string {
  return `${DOCS_PAGE}#${code.toLowerCase()}`
}

/** The code alone could be another library's: ours also points at its place in our docs. */
function codeOf(error: unknown): ErrorCode | undefined {
  if (!(error instanceof Error) || !('code' in error) || !('docs' in error)) return undefined
  const { code, docs } = error
  return isErrorCode(code) && docs === docsOf(code) ? code : undefined
}
