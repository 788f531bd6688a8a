/** `powgate store copy` */

import { UsageError } from '../sites/rules.ts'
import { AdminError } from '../sites/sites.ts'
import type { CopyEnd } from '../store/copy.ts'
import { StoreSetupError } from '../store/store.ts'
import { systemErrorText } from '../words/system-error.ts'
import type { CommandEntry, FlagValue, Input } from './command.ts'
import { printJson, printLine } from './output.ts'
import { settingsOf } from './site-store.ts'

const STORE: FlagValue = {
  placeholder: 'STORE',
  expects: 'a data directory, or an address as REDIS_URL has it',
  accepts: text => text.trim() !== '',
}

export const STORE_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'store copy',
    about: 'Copy a whole store to another, while no service uses either: from one host to several, or back.',
    flags: {
      from: { about: 'The store to copy.', value: STORE, isRequired: true },
      to: { about: 'Where to. A directory is made.', value: STORE, isRequired: true },
      replace: { about: 'Throw away what only the target has.' },
    },
    example: '--from /var/lib/powgate --to redis://10.0.0.5:6379',
    run: runCopy,
  },
]

const PROGRESS_MS = 1000

async function runCopy(input: Input): Promise<void> {
  const { copyStore, START_SECONDS } = await import('../store/copy.ts')
  const from = await openEnd('from', input.required('from'))
  const to = await openEnd('to', input.required('to')).catch(async error => {
    await from.close()
    throw error
  })
  let toldAtMs = performance.now()
  const tell = (records: number) => {
    if (performance.now() < toldAtMs + PROGRESS_MS) return
    toldAtMs = performance.now()
    process.stderr.write(`${records} records under way are copied\n`)
  }
  const copied = await copyStore(from, to, input.has('replace'), tell)
    .catch(orAdminError)
    .finally(() => Promise.all([from.close(), to.close()]))
  const { sites, apiKeys, auditEntries, underWay, why } = copied
  if (input.has('json'))
    return printJson({ from: from.place, to: to.place, ...copied, underWay: underWay ?? null })
  printLine(
    `From ${from.place} to ${to.place}: sites: ${sites}, API keys: ${apiKeys}, entries of the audit log: ${auditEntries}.`,
    underWay === undefined
      ? `What is under way could not be copied: ${why}. Challenges and tokens of before are refused.`
      : `Under way: ${underWay} records. Start the service within ${START_SECONDS} s: later, challenges and tokens of before are refused.`,
    'Not in the store, so not copied: the secret, the dashboard’s history, the counters of /metrics.',
    `Give each host the secret of the service before, ${from.shards === 1 ? 'POWGATE_SECRETS or the file secret of its data directory, ' : ''}or all that is under way is refused.`,
  )
}

async function openEnd(flag: 'from' | 'to', place: string): Promise<CopyEnd> {
  const isUrl = /^rediss?(\+\w+)?:\/\//.test(place)
  if (!isUrl && place.includes('://')) throw new UsageError(`--${flag}: expected ${STORE.expects}`)
  const config = await settingsOf(values => {
    if (isUrl) return { ...values, REDIS_URL: place }
    const kept = Object.entries(values).filter(([name]) => !/^(POWGATE_)?(REDIS|SENTINEL)_/.test(name))
    return { ...Object.fromEntries(kept), POWGATE_DATA_DIR: place }
  })
  try {
    if (config.redis === undefined) {
      const { EmbeddedEnd } = await import('../store/embedded/copy.ts')
      return new EmbeddedEnd(config.dataDir, flag === 'to')
    }
    const { openRedisEnd } = await import('../store/redis/copy.ts')
    return await openRedisEnd(config.redis, config.redisPrefix, config.redisShards)
  } catch (error) {
    return orAdminError(error)
  }
}

function orAdminError(error: unknown): never {
  if (error instanceof StoreSetupError) throw new AdminError(error.message)
  throw new AdminError(
    `a store failed and the copy is incomplete. Run the command again: ${systemErrorText(error)}`,
    { cause: error },
  )
}
