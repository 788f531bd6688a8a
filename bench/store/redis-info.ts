/** Reads Redis' own reports (INFO). */

import type { Redis } from 'ioredis'

/** Since the server started. */
export interface RedisCounters {
  readonly scriptCalls: number
  /** Includes the commands that scripts run. */
  readonly scriptUs: number
  /** Commands that scripts ran; Redis counts them like those of clients. */
  readonly commands: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly expiredKeys: number
}

const SCRIPT_COMMANDS: readonly string[] = ['eval', 'evalsha', 'fcall']
/** What this bench sends itself, and connections in general. */
const ADMIN_COMMANDS: readonly string[] = [
  'info',
  'config',
  'slowlog',
  'ping',
  'dbsize',
  'hello',
  'client',
  'select',
]

/** The counters, and how many bytes Redis sent to tell them. */
export async function countersOf(admin: Redis): Promise<{ counters: RedisCounters; replyBytes: number }> {
  const [commandStats, stats] = [await admin.info('commandstats'), await admin.info('stats')]
  const commands = readCommandStats(commandStats)
  const total = (isWanted: (name: string) => boolean, figure: 'calls' | 'usec') =>
    commands.reduce((sum, command) => sum + (isWanted(command.name) ? command[figure] : 0), 0)
  const isScript = (name: string) => SCRIPT_COMMANDS.includes(name)
  const counters = {
    scriptCalls: total(isScript, 'calls'),
    scriptUs: total(isScript, 'usec'),
    commands: total(name => !isScript(name) && !ADMIN_COMMANDS.includes(name), 'calls'),
    bytesIn: field(stats, 'total_net_input_bytes'),
    bytesOut: field(stats, 'total_net_output_bytes'),
    expiredKeys: field(stats, 'expired_keys'),
  }
  return { counters, replyBytes: Buffer.byteLength(stats) }
}

/** A number of INFO's reply. Throws if it is not there, so that nothing is taken for zero. */
export function field(info: string, name: string): number {
  const text = new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]
  if (text === undefined) throw new Error(`INFO has no ${name}`)
  return Number(text)
}

interface CommandStats {
  /** Without the subcommand. */
  readonly name: string
  readonly calls: number
  readonly usec: number
}

function readCommandStats(info: string): CommandStats[] {
  return [...info.matchAll(/^cmdstat_([a-z_]+)\S*?:calls=(\d+),usec=(\d+)/gm)].map(
    ([, name, calls, usec]) => ({
      name: name!,
      calls: Number(calls),
      usec: Number(usec),
    }),
  )
}

/** Of the script calls in the slow log: the longest, and how many took longer than a bound. */
export async function longestCall(
  admin: Redis,
  boundUs: number,
): Promise<{ longestCallUs: number; callsOver: number }> {
  const entries = (await admin.slowlog('GET', -1)) as [
    id: number,
    at: number,
    us: number,
    args: readonly string[],
    ...rest: unknown[],
  ][]
  const times = entries
    .filter(([, , , [name]]) => SCRIPT_COMMANDS.includes(name!.toLowerCase()))
    .map(([, , us]) => us)
  if (times.length === 0) throw new Error('the slow log holds no script call')
  return {
    longestCallUs: times.reduce((longest, us) => Math.max(longest, us), 0),
    callsOver: times.filter(us => us > boundUs).length,
  }
}
