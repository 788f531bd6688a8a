/** Allowed origins (RFC 6454 serialisation: scheme, host, port), with patterns for subdomains. */

const PATTERN = /^(https?):\/\/(\*\.)?([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/

/** Whether a text can be in a site's list: `https://example.com`, `https://*.example.com` or `http://localhost:3000`. */
export function isOriginPattern(text: string): boolean {
  const match = PATTERN.exec(text)
  if (match === null) return false
  const [, scheme, wildcard, host, port] = match
  if (wildcard !== undefined && (host!.startsWith('[') || !host!.includes('.'))) return false
  try {
    // Browsers leave out a default port, so an entry with one would never match.
    return (
      new URL(`${scheme}://${host}${port === undefined ? '' : `:${port}`}`).origin === text.replace('*.', '')
    )
  } catch {
    return false
  }
}

export class OriginList {
  /** The host of the only allowed origin; undefined if several, a pattern or all origins are allowed. */
  readonly onlyHostname: string | undefined
  /** The hosts of the exact origins. */
  readonly hostnames: readonly string[]
  readonly #exact: ReadonlySet<string>
  /** `https://*.example.com` as scheme prefix and host suffix: `https://` and `.example.com`. */
  readonly #wildcards: readonly { prefix: string; suffix: string }[]

  /** @param patterns texts that have passed `isOriginPattern` */
  constructor(patterns: readonly string[]) {
    this.#exact = new Set(patterns.filter(pattern => !pattern.includes('*')))
    this.hostnames = [...this.#exact].map(origin => new URL(origin).hostname)
    this.onlyHostname = patterns.length === 1 ? this.hostnames[0] : undefined
    this.#wildcards = patterns
      .filter(pattern => pattern.includes('*'))
      .map(pattern => {
        const [prefix = '', suffix = ''] = pattern.split('*')
        return { prefix, suffix }
      })
  }

  /** @param origin the request's Origin header, empty if absent */
  allows(origin: string, requireOrigin: boolean): boolean {
    if (origin === '') return !requireOrigin
    if (this.#exact.size === 0 && this.#wildcards.length === 0) return true
    return (
      this.#exact.has(origin) ||
      this.#wildcards.some(({ prefix, suffix }) => isSubdomain(origin, prefix, suffix))
    )
  }
}

/** The host of an origin, without its port; undefined for an origin of no web page, such as `null`. */
export function hostnameOf(origin: string): string | undefined {
  const match = PATTERN.exec(origin)
  return match === null || match[2] !== undefined ? undefined : match[3]
}

function isSubdomain(origin: string, prefix: string, suffix: string): boolean {
  if (!origin.startsWith(prefix) || !origin.endsWith(suffix)) return false
  const labels = origin.slice(prefix.length, origin.length - suffix.length)
  return /^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(labels)
}
