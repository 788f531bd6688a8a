/** Whether a Redis can be used at all: the first step of a start, and of a command. */

import { describeTarget, type RedisTarget } from '../../config/redis-target.ts'
import { StoreSetupError, type StoreTrouble } from '../store.ts'
import { type Ask, infoOf } from './advice.ts'

const VERSION_MIN = [6, 2] as const
/** Errors that waiting does not mend. */
const REFUSALS = /WRONGPASS|NOAUTH|NOPERM|invalid password/i

/** By what is said of a Redis: the variables that are likely to be wrong, the first that fits. */
const BLAMED: readonly (readonly [about: RegExp, variables: (target: RedisTarget) => readonly string[]])[] = [
  [/to sentinel .*(WRONGPASS|NOAUTH|NOPERM|invalid password)/i, ({ from }) => [from.sentinel]],
  [/NOAUTH/, ({ from }) => [from.password]],
  [/WRONGPASS|invalid password/i, ({ username, from }) => [...(username ? [from.user] : []), from.password]],
  [/NOPERM.* keys?\b/, () => ['POWGATE_REDIS_PREFIX']],
  [/NOPERM/, ({ from }) => [from.user]],
  [/altnames/, () => ['POWGATE_REDIS_TLS_NAME']],
  [/certificate required|alert (bad cert|unknown ca|handshake)/, () => ['POWGATE_REDIS_TLS_CERT']],
  [/self-signed|unable to (get|verify)/, () => ['POWGATE_REDIS_TLS_CA']],
]

const POLL_MS = 20

/** Why a Redis cannot be used, for whoever configured it. */
export function troubleOf(target: RedisTarget, why: string): StoreTrouble {
  const [, variables] = BLAMED.find(([about]) => about.test(why)) ?? []
  const names = [...new Set(variables?.(target) ?? ['REDIS_URL'])].join(', ')
  return { line: `${names}: cannot use ${describeTarget(target)}: ${why}`, isLasting: REFUSALS.test(why) }
}

export interface Reaching {
  readonly target: RedisTarget
  readonly openMs: number
  readonly isReached: () => boolean | Promise<boolean>
  /** Why the server is not reached yet. */
  readonly cause: () => string
  readonly onWaiting?: ((cause: string) => void) | undefined
}

/** Resolves once the server is reached. Throws StoreSetupError after `openMs`, or if the server refuses for good. */
export async function untilReached({ target, openMs, isReached, cause, onWaiting }: Reaching): Promise<void> {
  const giveUpAt = performance.now() + openMs
  while (!(await isReached())) {
    const why = cause()
    const { line, isLasting } = troubleOf(target, why)
    if (isLasting || performance.now() > giveUpAt) throw new StoreSetupError(line)
    onWaiting?.(why)
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}

/**
 * What a server that answers may lack: the version, or the database. ioredis stays in database 0 where there is no other.
 *
 * Throws StoreSetupError.
 */
export async function checkServer(ask: Ask, target: RedisTarget): Promise<void> {
  if (target.db > 0)
    await ask('select', String(target.db)).catch((error: Error) => {
      throw new StoreSetupError(troubleOf(target, error.message).line)
    })
  const { redis_version: text = '' } = await infoOf(ask, 'server')
  const version = /^(\d+)\.(\d+)/.exec(text)
  if (version === null) return
  const [major, minor] = [Number(version[1]), Number(version[2])]
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])) {
    throw new StoreSetupError(
      `REDIS_URL: ${describeTarget(target)} is version ${major}.${minor}; ${VERSION_MIN.join('.')} or newer is needed`,
    )
  }
}
