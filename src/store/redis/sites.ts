/**
 * Sites, API keys and the audit log alone, for commands and the dashboard. No shard is used. A process that has no earlier
 * reply of a shard cannot tell an outage of all workers from a clock that was set (lua/answers.lua). Its call would replace
 * the shard's epoch.
 */

import { Command } from 'ioredis'
import type { RedisTarget } from '../../config/redis-target.ts'
import { withDeadline } from '../deadline.ts'
import type { SiteStore } from '../store.ts'
import { connect } from './connection.ts'
import { checkServer, untilReached } from './reach.ts'
import { RedisRecords } from './records.ts'

export interface RedisSitesOptions {
  readonly target: RedisTarget
  readonly keyPrefix: string
  readonly deadlineMs: number
  readonly openMs: number
}

/** Throws StoreSetupError. */
export async function openRedisSites(
  options: RedisSitesOptions,
): Promise<SiteStore & { close(): Promise<void> }> {
  const { target, keyPrefix, deadlineMs, openMs } = options
  const connection = connect(target, deadlineMs)
  const records = new RedisRecords(connection, keyPrefix, deadlineMs)
  const ask = (name: string, ...args: string[]) => {
    const command = new Command(name, args, { replyEncoding: 'utf8' })
    return withDeadline(connection.send(command), deadlineMs, name)
  }
  let failure = ''
  try {
    await untilReached({
      target,
      openMs,
      isReached: () =>
        records.changesSince(undefined).then(
          () => true,
          (error: Error) => {
            failure = error.message
            return false
          },
        ),
      cause: () => connection.lastError() ?? failure,
    })
    await checkServer(ask, target)
  } catch (error) {
    connection.close()
    throw error
  }
  return Object.assign(records, { close: async () => connection.close() })
}
