/** What an operator should know about a Redis, from what it says of itself. */

import type { RedisTarget } from './target.ts'

export type Ask = (name: string, ...args: string[]) => Promise<unknown>

export async function adviceOn(ask: Ask, kind: RedisTarget['kind']): Promise<string[]> {
  const [persistence, replication, memory, cluster] = await Promise.all([
    infoOf(ask, 'persistence'),
    infoOf(ask, 'replication'),
    infoOf(ask, 'memory'),
    kind === 'cluster' ? fieldsOf(await attempt(ask, 'cluster', 'info')) : {},
  ])
  const policy = memory.maxmemory_policy ?? (await setting(ask, 'maxmemory-policy'))
  return [
    ...evictionAdvice(policy, Number(memory.maxmemory ?? 0)),
    ...persistenceAdvice(persistence, await setting(ask, 'save')),
    ...replicaAdvice(replication, kind, await setting(ask, 'min-replicas-to-write')),
    ...clusterAdvice(cluster),
  ]
}

/** `Redis 7.0.15`, `Valkey 8.0.1`; undefined if the server does not say. */
export async function versionOf(ask: Ask): Promise<string | undefined> {
  const { valkey_version: valkey, redis_version: redis } = await infoOf(ask, 'server')
  return valkey === undefined ? redis && `Redis ${redis}` : `Valkey ${valkey}`
}

export type Fields = Readonly<Record<string, string>>

function evictionAdvice(policy: string | undefined, bytesMax: number): string[] {
  if (policy !== undefined && policy !== 'noeviction') {
    return [
      `Redis may evict keys (maxmemory-policy ${policy}): set noeviction, or tokens could be redeemed twice`,
    ]
  }
  return bytesMax === 0 && policy !== undefined
    ? [
        'Redis has no memory limit: set maxmemory (with noeviction), so that it refuses before the host runs out',
      ]
    : []
}

function persistenceAdvice(fields: Fields, save: string | undefined): string[] {
  if (fields.aof_enabled === undefined) return []
  const lines: string[] = []
  if (fields.aof_enabled === '0' && save === '')
    lines.push(
      'Redis keeps nothing on disk: sites and API keys are lost when it restarts; set appendonly yes',
    )
  else if (fields.aof_enabled === '0')
    lines.push(
      'Redis saves snapshots only: changes of sites since the last one are lost in a crash; set appendonly yes',
    )
  if (fields.rdb_last_bgsave_status === 'err' || fields.aof_last_write_status === 'err')
    lines.push('Redis fails to write to its disk: look at its log')
  return lines
}

function replicaAdvice(fields: Fields, kind: RedisTarget['kind'], minReplicas: string | undefined): string[] {
  const { role } = fields
  if (role === undefined) return []
  if (role !== 'master') return [`this Redis is a replica (role ${role}): REDIS_URL must name the primary`]
  const replicas = Number(fields.connected_slaves ?? 0)
  if (kind === 'standalone' && replicas === 0) return []
  if (replicas === 0) return ['the primary that answered has no replica: nothing can take its place']
  return minReplicas === '0'
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

/** What the server does not let be asked is left out. */
export async function infoOf(ask: Ask, section: string): Promise<Fields> {
  return fieldsOf(await attempt(ask, 'info', section))
}

/** undefined if it cannot be told: managed servers often forbid CONFIG. */
async function setting(ask: Ask, name: string): Promise<string | undefined> {
  const reply = await attempt(ask, 'config', 'get', name)
  return Array.isArray(reply) && typeof reply[1] === 'string' ? reply[1] : undefined
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
