/** A restricted user of Redis, as the README says one is made. */

import { readFileSync } from 'node:fs'
import type { RedisServer } from './redis.ts'

export const USER = 'powgate'
export const PASSWORD = 'a password, with: / @ and %'

const README = new URL('../../README.md', import.meta.url)

/** What may be done by whom, from the README: `ACL SETUSER powgate on >... ~pg:* ...`, without name and password. */
export function rulesOf(readme: string): string[] {
  const line = /^ACL SETUSER powgate (.*)$/m.exec(readme)?.[1]
  return line === undefined ? RULES : line.split(' ').filter(rule => !/^(reset|on|>.*)$/.test(rule))
}

export const RULES = [
  ...['resetchannels', '~pg:*', '-@all', '+@read', '+@write', '-@dangerous'],
  ...[
    '+eval',
    '+evalsha',
    '+time',
    '+info',
    '+select',
    '+asking',
    '+cluster|slots',
    '+cluster|info',
    '+config|get',
  ],
]

/** On every server: the users of a Cluster, or of replicas, are each server's own. */
export async function makeUser(servers: readonly RedisServer[], password = PASSWORD): Promise<void> {
  const rules = rulesOf(readFileSync(README, 'utf8'))
  for (const server of servers)
    await server.ask('acl', 'setuser', USER, 'reset', 'on', `>${password}`, ...rules)
}
