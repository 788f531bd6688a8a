/** Why a file, connection or store failed: the words of Node.js and ioredis have codes, calls and terms of their own. */

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'this user has no permission',
  EPERM: 'this user has no permission',
  EISDIR: 'it is a directory',
  ENOTDIR: 'part of its path is no directory',
  EEXIST: 'there is a file of this name',
  ELOOP: 'its links lead in a circle',
  ENOSPC: 'the disk is full, or has no inodes left (df -i)',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EMFILE: 'too many files are open (ulimit -n)',
  Z_DATA_ERROR: 'it is not a gzip file, or damaged',
  Z_BUF_ERROR: 'it is a gzip file without its end',
  EADDRINUSE: 'the port is taken',
  EADDRNOTAVAIL: 'this machine does not have the address',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection was closed',
  EHOSTUNREACH: 'no route leads there',
  ENETUNREACH: 'no route leads there',
  ENOTFOUND: 'there is no host of this name',
  EAI_AGAIN: 'the name server does not answer',
  ETIMEDOUT: 'no answer in time',
}

/** Errors of ioredis have no code. */
const TEXTS: readonly (readonly [about: RegExp, words: string])[] = [
  [/^(Connection is closed|Cluster is disconnect|(Stream|Cluster) isn't )/, 'there is no connection'],
  [/^(All sentinels|None of startup nodes)/, 'none of them answers'],
  [/^(timeout|Command timed out)$/, 'no answer in time'],
  [/^(Reached the max retries|Command aborted due)/, 'the connection ended before the answer'],
  [/^OOM command not allowed/, 'Redis is full: raise its maxmemory'],
  [
    /^(TRYAGAIN|ASK) /,
    'a slot is being moved; if the move was broken off: start or forget its dead node, then redis-cli --cluster fix HOST:PORT',
  ],
  [
    /^ERR The user executing the script can't run/,
    'the Redis user lacks the right to a command, which powgate check names',
  ],
  [/please report (this|it)\.$/i, "it does not speak Redis' protocol"],
]

export function systemErrorText(error: unknown): string {
  const { code = '', message = String(error) } = error as NodeJS.ErrnoException
  return WORDS[code] ?? storeErrorText(message)
}

/** @param message of Node.js or ioredis, as `connect ECONNREFUSED 10.0.0.5:6379`. A server's own words and a last ` (host:port)` stay. */
export function storeErrorText(message: string): string {
  const [, bare, node = ''] = /^(.+)( \(\S+:\d+\))$/.exec(message) ?? []
  if (bare !== undefined) return storeErrorText(bare) + node
  const [, sentinel, why = ''] = /^failed to connect to (sentinel \S+) because (.*)$/.exec(message) ?? []
  if (sentinel !== undefined) return `${sentinel}: ${storeErrorText(why)}`
  const [, words] = TEXTS.find(([about]) => about.test(message)) ?? []
  if (words !== undefined) return words
  return message.replace(/^\w+ (E[A-Z_]+)\b(?: (\S+)$)?/, (matched, code: string, address?: string) => {
    const found = WORDS[code]
    if (found === undefined) return matched
    return address === undefined ? found : `${found} (${address})`
  })
}
