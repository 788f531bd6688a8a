/** A fault that the operator can mend. The message has a line per problem: what is wrong, and what was expected. No stack is shown. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** A command's call is wrong, and nothing was opened or changed. The exit code is 2. */
export class UsageError extends OperatorError {}
