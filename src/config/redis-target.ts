/**
 * Parses a Redis URL: which servers, and how to reach them.
 *
 *   redis://[user:password@]host[:port][/db]                     one server (rediss:// for TLS)
 *   redis://a:7000,redis://b:7000,...                            a Cluster: two or more seeds
 *   redis+cluster://[user:password@]a:7000,b:7000                a Cluster, also with one seed
 *   redis+sentinel://[user:password@]a:26379,b:26379/<name>[/db] Sentinels that know the primary <name>
 *
 * With rediss+sentinel:// both the Sentinels and the servers that they name speak TLS. IPv6 hosts stand in brackets.
 */

export interface RedisTarget {
  readonly kind: 'standalone' | 'sentinel' | 'cluster'
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  /** Sentinel only: name of the primary. */
  readonly primaryName: string | undefined
  readonly username: string | undefined
  readonly password: string | undefined
  /** Sentinel only. */
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
  /** The variables that these came from, or would have to. */
  readonly from: Readonly<Record<'user' | 'password' | 'sentinel', string>>
  readonly db: number
  /** undefined: no TLS. */
  readonly tls: RedisTls | undefined
}

/** PEM texts and a name; undefined where not given. */
export interface RedisTls {
  /** Replaces the authorities that Node.js trusts. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** The host name that the servers' certificates must have; by default the host of the connection. */
  readonly name?: string | undefined
}

/** undefined if the text is none of the forms above. */
export function parseRedisUrl(text: string): RedisTarget | undefined {
  const parts = text.split(',').map(part => part.trim())
  const scheme = /^(rediss?(?:\+cluster|\+sentinel)?):\/\//.exec(parts[0] ?? '')?.[1]
  if (scheme === undefined) return undefined
  const urls: URL[] = []
  for (const part of parts) {
    const authority = part.replace(/^rediss?(\+cluster|\+sentinel)?:\/\//, '')
    if (authority === '' || (part !== authority && !part.startsWith(`${scheme}://`))) return undefined
    if (!URL.canParse(`redis://${authority}`)) return undefined
    urls.push(new URL(`redis://${authority}`))
  }
  const [engine, mode] = scheme.split('+')
  const kind =
    mode === 'sentinel' ? 'sentinel' : mode === 'cluster' || urls.length > 1 ? 'cluster' : 'standalone'
  return targetOf(kind, urls, engine === 'rediss')
}

const DEFAULT_PORTS = { standalone: 6379, cluster: 6379, sentinel: 26379 }

function targetOf(kind: RedisTarget['kind'], urls: readonly URL[], tls: boolean): RedisTarget | undefined {
  const path = urls[urls.length - 1]!.pathname.split('/').slice(1)
  const primaryName = kind === 'sentinel' ? path.shift() : undefined
  const [dbText = ''] = path
  const isDbAllowed = kind !== 'cluster'
  if (kind === 'sentinel' && (primaryName === undefined || primaryName === '')) return undefined
  if (path.length > 1 || !/^\d{0,3}$/.test(dbText) || (dbText !== '' && !isDbAllowed)) return undefined
  if (urls.some(url => url.hostname === '' || url.search !== '' || url.hash !== '')) return undefined
  const credentials = credentialsOf(urls)
  if (credentials === undefined) return undefined
  return {
    kind,
    nodes: urls.map(url => ({ host: hostOf(url), port: Number(url.port || DEFAULT_PORTS[kind]) })),
    primaryName,
    ...credentials,
    sentinelUsername: undefined,
    sentinelPassword: undefined,
    from: { user: 'REDIS_URL', password: 'REDIS_URL', sentinel: 'POWGATE_SENTINEL_PASSWORD' },
    db: Number(dbText),
    tls: tls ? {} : undefined,
  }
}

/** One pair for all nodes, at whichever node it stands; undefined if nodes have different pairs, or one cannot be decoded. */
function credentialsOf(urls: readonly URL[]): Pick<RedisTarget, 'username' | 'password'> | undefined {
  const given = urls.filter(url => url.username !== '' || url.password !== '')
  const [first] = given
  if (given.some(url => url.username !== first?.username || url.password !== first?.password))
    return undefined
  const username = decoded(first?.username)
  const password = decoded(first?.password)
  if (username === null || password === null) return undefined
  return { username, password }
}

/** null if the text is not percent-encoded as a URL must be. */
function decoded(text: string | undefined): string | undefined | null {
  try {
    return text ? decodeURIComponent(text) : undefined
  } catch {
    return null
  }
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

/** Kind and hosts, without credentials: for logs. */
export function describeTarget(target: RedisTarget): string {
  const name = (host: string) => (host.includes(':') ? `[${host}]` : host)
  const nodes = target.nodes.map(({ host, port }) => `${name(host)}:${port}`).join(', ')
  const how = target.tls === undefined ? '' : ' over TLS'
  return `Redis ${target.kind === 'standalone' ? '' : `${target.kind} `}at ${nodes}${how}`
}
