/** Who is told in the audit log to have made a change. */

import { hostname, userInfo } from 'node:os'
import type { Author } from '../domain/audit.ts'
import { NAME, UsageError } from './rules.ts'

/**
 * The person, or the script, that called a command: POWGATE_ACTOR, or who called sudo, or the user of the process.
 *
 * @param how the command's name
 * @throws UsageError if a variable holds what cannot stand in a line
 */
export function authorOfCommand(how: string, env: NodeJS.ProcessEnv = process.env): Author {
  const variable = ['POWGATE_ACTOR', 'SUDO_USER'].find(name => env[name]?.trim())
  const actor = variable === undefined ? userName() : env[variable]!.trim()
  if (variable !== undefined && !NAME.accepts(actor))
    throw new UsageError(`${variable}: expected ${NAME.expects}, got ${JSON.stringify(actor)}`)
  return { who: atHost(actor), how }
}

/** powgate itself. */
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
