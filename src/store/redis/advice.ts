/** What an operator should know about a Redis, from the server's own INFO, CONFIG and CLUSTER INFO. */

import type { RedisTarget } from '../../config/redis-target.ts'

export type Ask = (name: string, ...args: string[]) => Promise<unknown>

export async function adviceOn(ask: Ask, kind: RedisTarget['kind']): Promise<string[]> {
  const [persistence, replication, memory, cluster] = await Promise.all([
    infoOf(ask, 'persistence'),
    infoOf(ask, 'replication'),
    infoOf(ask, 'memory'),
    kind === 'cluster' ? fieldsOf(await attempt(ask, 'cluster', 'info')) : {},
  ])
  return [
    ...evictionAdvice(memory),
    ...persistenceAdvice(persistence),
    ...replicaAdvice(replication, kind),
    ...clusterAdvice(cluster),
  ]
}

/** `Redis 7.0.15`, `Valkey 8.0.1`; undefined if the server does not say. */
export async function versionOf(ask: Ask): Promise<string | undefined> {
  const { valkey_version: valkey, redis_version: redis } = await infoOf(ask, 'server')
  return valkey === undefined ? redis && `Redis ${redis}` : `Valkey ${valkey}`
}

export type Fields = Readonly<Record<string, string>>

function evictionAdvice({ maxmemory_policy: policy, maxmemory }: Fields): string[] {
  if (policy === undefined)
    return [
      'Redis does not say whether it may evict keys (INFO memory): see that maxmemory-policy is noeviction',
    ]
  if (policy !== 'noeviction') {
    return [
      `Redis may evict keys (maxmemory-policy ${policy}): set noeviction, or tokens could be redeemed twice`,
    ]
  }
  return maxmemory === '0'
    ? [
        'Redis has no memory limit: set maxmemory (with noeviction), so that it refuses before the host runs out',
      ]
    : []
}

/** Whether it takes snapshots INFO does not tell, and CONFIG GET would tell passwords too. */
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

function replicaAdvice(fields: Fields, kind: RedisTarget['kind']): string[] {
  const { role } = fields
  if (role === undefined) return []
  if (role !== 'master') return [`this Redis is a replica (role ${role}): REDIS_URL must name the primary`]
  const replicas = Number(fields.connected_slaves ?? 0)
  if (kind === 'standalone' && replicas === 0) return []
  if (replicas === 0) return ['the primary that answered has no replica: nothing can take its place']
  // INFO counts them where min-replicas-to-write asks for some.
  return fields.min_slaves_good_slaves === undefined
    ? [
        'a primary that is cut off goes on alone (min-replicas-to-write 0): set 1, and min-replicas-max-lag 10',
      ]
    : []
}

function clusterAdvice(fields: Fields): string[] {
  const lines: string[] = []
  if (fields.cluster_state !== undefined && fields.cluster_state !== 'ok')
    lines.push(`the Cluster is not well: cluster_state ${fields.cluster_state}`)
  const slots = Number(fields.cluster_slots_ok ?? CLUSTER_SLOTS)
  if (slots < CLUSTER_SLOTS) lines.push(`the Cluster serves ${slots} of ${CLUSTER_SLOTS} slots`)
  return lines
}

const CLUSTER_SLOTS = 16384

/** Empty if the server refuses the command. */
export async function infoOf(ask: Ask, section: string): Promise<Fields> {
  return fieldsOf(await attempt(ask, 'info', section))
}

async function attempt(ask: Ask, name: string, ...args: string[]): Promise<unknown> {
  try {
    return await ask(name, ...args)
  } catch {
    return undefined
  }
}

/** Lines of `name:value`. */
function fieldsOf(text: unknown): Fields {
  if (typeof text !== 'string') return {}
  return Object.fromEntries([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name, value]))
}
