/** Whether a Redis can be used at all: the first step of a start, and of a command. */

import { StoreSetupError } from '../store.ts'
import { type Ask, infoOf } from './advice.ts'

const VERSION_MIN = [6, 2] as const
/** Errors that waiting does not mend. */
const REFUSALS = /WRONGPASS|NOAUTH|NOPERM|invalid password/i

const POLL_MS = 20

export interface Reaching {
  /** The server, in words. */
  readonly description: string
  readonly openMs: number
  readonly isReached: () => boolean | Promise<boolean>
  /** Why the server is not reached yet. */
  readonly cause: () => string
  readonly onWaiting?: ((cause: string) => void) | undefined
}

/** Resolves once the server is reached. Throws StoreSetupError after `openMs`, or if the server refuses for good. */
export async function untilReached({
  description,
  openMs,
  isReached,
  cause,
  onWaiting,
}: Reaching): Promise<void> {
  const giveUpAt = performance.now() + openMs
  while (!(await isReached())) {
    const why = cause()
    if (performance.now() > giveUpAt || REFUSALS.test(why))
      throw new StoreSetupError(`REDIS_URL: cannot use ${description}: ${why}`)
    onWaiting?.(why)
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}

/** Throws StoreSetupError. */
export async function checkVersion(ask: Ask, description: string): Promise<void> {
  const { redis_version: text = '' } = await infoOf(ask, 'server')
  const version = /^(\d+)\.(\d+)/.exec(text)
  if (version === null) return
  const [major, minor] = [Number(version[1]), Number(version[2])]
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])) {
    throw new StoreSetupError(
      `REDIS_URL: ${description} is version ${major}.${minor}; ${VERSION_MIN.join('.')} or newer is needed`,
    )
  }
}
