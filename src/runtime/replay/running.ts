/** Work of a call that goes on (a step's body, a pause between its attempts) and can be told to stop. */
export interface Running {
  /** A function of the user's, which may take any time. */
  readonly isUserCode: boolean
  abort(reason: unknown): void
}
