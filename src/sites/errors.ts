/** Errors that a command reports by their message alone, without a stack. */

/** The call is wrong: the message names the flag or argument, and what was expected. The exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The call is right, but cannot be done: the message has a line per problem. The exit code is 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
}
