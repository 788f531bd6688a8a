/** The author of a change, for the audit log. */

import { hostname, userInfo } from 'node:os'
import type { Author } from '../domain/audit.ts'
import { NAME, UsageError } from './rules.ts'

/**
 * The author of a command's changes: POWGATE_ACTOR, else the user who called sudo, else the user of the process.
 *
 * @param how the command's name
 * @throws UsageError if the variable's text cannot be printed in one line
 */
export function authorOfCommand(how: string, env: NodeJS.ProcessEnv = process.env): Author {
  const variable = ['POWGATE_ACTOR', 'SUDO_USER'].find(name => env[name]?.trim())
  const actor = variable === undefined ? userName() : env[variable]!.trim()
  if (variable !== undefined && !NAME.accepts(actor))
    throw new UsageError(`${variable}: expected ${NAME.expects}, got ${JSON.stringify(actor)}`)
  return { who: atHost(actor), how }
}

/** For changes that the service makes by itself. */
export function authorInService(how: string): Author {
  return { who: atHost(`powgate (${how})`), how }
}

function atHost(who: string): string {
  return `${who} at ${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.()}` // containers run as numbers that no file names
  }
}
