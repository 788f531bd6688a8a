/** A restricted user of Redis, created as docs/redis.md describes. */

import { readFileSync } from 'node:fs'
import type { RedisServer } from './redis.ts'

export const USER = 'powgate'
export const PASSWORD = 'a password, with: / @ and %'

const PAGE = new URL('../../docs/redis.md', import.meta.url)

/** The user's rights: `ACL SETUSER powgate on >... ~pg:* ...` of the page, without name and password. */
function rules(): string[] {
  const line = /^ACL SETUSER powgate (.*)$/m.exec(readFileSync(PAGE, 'utf8'))
  if (line === null) throw new Error(`${PAGE.pathname} has no ACL SETUSER`)
  return line[1]!.split(' ').filter(rule => !/^(reset|on|>.*)$/.test(rule))
}

/** Creates the user on every server: nodes of a Cluster, and replicas, each have their own users. */
export async function makeUser(servers: readonly RedisServer[], password = PASSWORD): Promise<void> {
  for (const server of servers)
    await server.ask('acl', 'setuser', USER, 'reset', 'on', `>${password}`, ...rules())
}
