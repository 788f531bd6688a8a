/** Tells if a store can be used, and what the operator of a Redis should know. */

import { describeTarget, type RedisTarget } from '../../config/redis.ts'
import { CLOCK_WARNING_SECONDS } from '../../domain/clock.ts'
import { OperatorError } from '../../words/errors.ts'
import { storeErrorText } from '../../words/system-error.ts'
import type { StoreListener, StoreStatus } from '../store.ts'
import { type Ask, CLUSTER_SLOTS, type Connection, connect, withDeadline } from './connection.ts'
import { NOT_ALLOWED, troubleOf } from './trouble.ts'

const VERSION_MIN = [6, 2] as const
const POLL_MS = 20
const OPEN_MS = 5000 // the default of `openTimeoutMs`
const REFUSAL_MS = 1000 // after this time, a Cluster's refusal is final
/** The server's time is asked this many times, because the answer with the shortest round trip is the most exact. */
const TIME_CALLS = 5

/**
 * Waits until the store can be used: until `reach`, which asks it, resolves.
 *
 * @throws OperatorError after `openTimeoutMs`, or if the server refuses for good, or lacks something
 */
export async function untilUsable(
  connection: Connection,
  options: { target: RedisTarget; openTimeoutMs?: number } & Pick<StoreListener, 'onWaiting'>,
  reach: () => Promise<unknown>,
): Promise<void> {
  const { target, openTimeoutMs = OPEN_MS, onWaiting } = options
  const startedAt = performance.now()
  for (;;) {
    const why = await reach().then(
      () => undefined,
      (error: Error) => connection.lastError() ?? withRefusedCommand(connection.ask, error.message),
    )
    if (why === undefined) break
    const { cause, line, isLasting } = troubleOf(target, why)
    // One node of a Cluster may refuse, for example a replica without the user, and the next one answer.
    const isFinal = isLasting && (target.kind !== 'cluster' || performance.now() > startedAt + REFUSAL_MS)
    if (isFinal || performance.now() > startedAt + openTimeoutMs) throw new OperatorError(line)
    onWaiting?.(storeErrorText(why), cause)
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  await selectDatabase(connection.ask, target)
  await checkVersion(connection.ask, target)
}

/** Adds the refused command to a script's error, which names none before Redis 7.2: most often INFO, which is in `@dangerous`. */
async function withRefusedCommand(ask: Ask, why: string): Promise<string> {
  if (!NOT_ALLOWED.test(why)) return why
  const refusal = await ask('info', 'server').catch((error: Error) => error.message)
  if (typeof refusal === 'string' && refusal.startsWith('NOPERM')) return refusal
  return `NOPERM the user lacks a command that the scripts need (${why})`
}

/** If the database is missing, ioredis would stay in database 0. */
async function selectDatabase(ask: Ask, target: RedisTarget): Promise<void> {
  if (target.db > 0)
    await ask('select', String(target.db)).catch((error: Error) => {
      throw new OperatorError(troubleOf(target, error.message).line)
    })
}

async function checkVersion(ask: Ask, target: RedisTarget): Promise<void> {
  const { redis_version: text = '' } = await infoOf(ask, 'server').catch((): Fields => ({}))
  const version = /^(\d+)\.(\d+)/.exec(text)
  if (version === null) return
  const [major, minor] = [Number(version[1]), Number(version[2])]
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1]))
    throw new OperatorError(
      `REDIS_URL: ${describeTarget(target)} is version ${major}.${minor}; ${VERSION_MIN.join('.')} or newer is needed`,
    )
}

/** What the operator should change or know about one server. */
export async function adviceOn(ask: Ask, kind: RedisTarget['kind']): Promise<string[]> {
  const [persistence, replication, memory, cluster] = await Promise.all([
    infoOf(ask, 'persistence'),
    infoOf(ask, 'replication'),
    infoOf(ask, 'memory'),
    kind === 'cluster' ? fieldsOf(await askOrNothing(ask, 'cluster', 'info')) : {},
  ])
  const lines = [
    evictionAdvice(memory),
    memoryLimitAdvice(memory),
    ...persistenceAdvice(persistence),
    replicaAdvice(replication, kind),
    ...clusterAdvice(cluster),
    clockAdvice(await clockAhead(ask)),
  ]
  return lines.filter(line => line !== undefined)
}

type SlotRange = [first: number, last: number, ...nodes: [host: string, port: number][]]

/** Connects to each node that REDIS_URL or the Cluster names: nothing else asks a replica before it takes over. */
export async function nodeAdvice(ask: Ask, target: RedisTarget, deadlineMs: number): Promise<string[]> {
  const slots = (await askOrNothing(ask, 'cluster', 'slots')) as SlotRange[] | undefined
  const told = slots?.flatMap(([, , ...nodes]) => nodes.map(([host, port]) => ({ host, port }))) ?? []
  const known = told.filter(({ host }) => host !== '?') // a node that does not tell its host: see ioredis.ts
  const nodes = new Map([...known, ...target.nodes].map(node => [`${node.host}:${node.port}`, node]))
  const lines = [...nodes.values()].map(async node => {
    const alone = connect({ ...target, nodes: [node] }, deadlineMs)
    await withDeadline(new Promise<void>(alone.onReady), deadlineMs, '').catch(() => {})
    const why = alone.lastError()
    alone.close()
    const namer = target.nodes.includes(node) ? 'REDIS_URL' : 'the Cluster'
    return why === undefined ? [] : `${namer} names a node that cannot be used: ${storeErrorText(why)}`
  })
  return (await Promise.all(lines)).flat()
}

/** `Redis 7.0.15`, `Valkey 8.0.1`. */
export async function versionOf(ask: Ask): Promise<string | undefined> {
  const { valkey_version: valkey, redis_version: redis } = await infoOf(ask, 'server')
  return valkey === undefined ? redis && `Redis ${redis}` : `Valkey ${valkey}`
}

type Fields = Readonly<Record<string, string>>

function evictionAdvice({ maxmemory_policy: policy }: Fields): string | undefined {
  if (policy === undefined)
    return 'Redis does not say whether it may evict keys (INFO memory): see that maxmemory-policy is noeviction'
  if (policy === 'noeviction') return undefined
  return `Redis may evict keys (maxmemory-policy ${policy}): set noeviction, or tokens could be redeemed twice`
}

function memoryLimitAdvice({ maxmemory_policy: policy, maxmemory }: Fields): string | undefined {
  if (policy !== 'noeviction' || maxmemory !== '0') return undefined
  return 'Redis has no memory limit: set maxmemory (with noeviction), so that it refuses before the host runs out'
}

/** Says of snapshots "if it takes any", because INFO does not tell that, and CONFIG GET would tell passwords too. */
function persistenceAdvice(fields: Fields): string[] {
  if (fields.aof_enabled === undefined) return []
  const lines: string[] = []
  if (fields.aof_enabled === '0')
    lines.push(
      'Redis keeps no append-only file: changes of sites since its last snapshot, if it takes any, are lost in a crash; set appendonly yes',
    )
  if (fields.rdb_last_bgsave_status === 'err' || fields.aof_last_write_status === 'err')
    lines.push('Redis fails to write to its disk: look at its log')
  return lines
}

function replicaAdvice(fields: Fields, kind: RedisTarget['kind']): string | undefined {
  const { role } = fields
  if (role === undefined) return undefined
  if (role !== 'master') return `this Redis is a replica (role ${role}): REDIS_URL must name the primary`
  const replicas = Number(fields.connected_slaves ?? 0)
  if (replicas === 0)
    return kind === 'standalone' ? undefined : 'a primary has no replica: nothing can take its place'
  // INFO counts good replicas only if min-replicas-to-write is set.
  const needsReplica = fields.min_slaves_good_slaves !== undefined
  if (replicas > 1 && !needsReplica)
    return 'a primary that is cut off goes on alone (min-replicas-to-write 0): set 1, and min-replicas-max-lag 10'
  if (replicas === 1 && needsReplica)
    return 'there is one replica: promoted, it refuses all writes until another joins (min-replicas-to-write): set 0, or add a replica'
  return undefined
}

function clusterAdvice(fields: Fields): string[] {
  const lines: string[] = []
  if (fields.cluster_state !== undefined && fields.cluster_state !== 'ok')
    lines.push(`the Cluster is not well: cluster_state ${fields.cluster_state}`)
  const slots = Number(fields.cluster_slots_ok ?? CLUSTER_SLOTS)
  if (slots < CLUSTER_SLOTS) lines.push(`the Cluster serves ${slots} of ${CLUSTER_SLOTS} slots`)
  return lines
}

function clockAdvice(aheadSeconds: number): string | undefined {
  const apartSeconds = Math.abs(aheadSeconds)
  if (apartSeconds <= CLOCK_WARNING_SECONDS) return undefined
  return `the clocks of this host and of Redis are ${Math.round(apartSeconds)} s apart: keep both by NTP, hosts may differ by 5 s`
}

export async function statusOf(ask: Ask): Promise<StoreStatus> {
  const { maxmemory_policy: policy } = await infoOf(ask, 'memory')
  const { evicted_keys: evictedKeys = '0' } = await infoOf(ask, 'stats')
  const evictsBy = policy === 'noeviction' ? undefined : policy
  return { clockAheadSeconds: await clockAhead(ask), evictsBy, evictedKeys: Number(evictedKeys) }
}

/** The seconds by which this host's clock is ahead of the store's; 0 if unknown. */
export async function clockAhead(ask: Ask): Promise<number> {
  let aheadMs = 0
  let shortestMs = Number.POSITIVE_INFINITY
  for (let call = 0; call < TIME_CALLS; call++) {
    const askedAtMs = performance.now()
    const time = await askOrNothing(ask, 'time')
    const tookMs = performance.now() - askedAtMs
    if (!Array.isArray(time)) return 0
    if (tookMs >= shortestMs) continue
    shortestMs = tookMs
    aheadMs = Date.now() - tookMs / 2 - (Number(time[0]) * 1000 + Number(time[1]) / 1000)
  }
  return Math.round(aheadMs) / 1000
}

/** The fields of a section of INFO; empty if the user may not ask for it. */
export async function infoOf(ask: Ask, section: string): Promise<Fields> {
  return fieldsOf(await askOrNothing(ask, 'info', section))
}

/** Returns undefined if the server refuses. Rejects if no answer comes: callers take undefined for zero, or for nothing to say. */
async function askOrNothing(ask: Ask, name: string, ...args: string[]): Promise<unknown> {
  try {
    return await ask(name, ...args)
  } catch (error) {
    if ((error as Error).name !== 'ReplyError') throw error
    return undefined
  }
}

function fieldsOf(text: unknown): Fields {
  if (typeof text !== 'string') return {}
  return Object.fromEntries([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name, value]))
}
