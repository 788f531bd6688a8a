/** The origins of pages (RFC 6454: scheme, host and port) that may use a site; some allowed ones are patterns with a `*`. */

import { isLoopback } from '../addresses/address.ts'

/** Web views of apps: Capacitor, Ionic, Tauri, Wails, Electron. */
const NATIVE_SCHEMES = 'capacitor|ionic|tauri|wails|app|electron'
const PATTERN = new RegExp(
  `^(?<scheme>https?|${NATIVE_SCHEMES})://(?<subdomains>\\*\\.)?(?<host>[a-z0-9_.*-]+|\\[[0-9a-f:.]+\\])(?::(?<port>\\d{1,5}|\\*))?$`,
)

const partsOf = (text: string): Record<string, string | undefined> => PATTERN.exec(text)?.groups ?? {}

/**
 * Accepts an origin. It may have one `*` for subdomains (`https://*.example.com`) or part of a label (`https://shop-*.example.com`),
 * and another for a loopback name's port (`http://localhost:*`).
 */
export function isOriginPattern(text: string): boolean {
  const { scheme, subdomains = '', host, port = '' } = partsOf(text)
  if (host === undefined) return false
  const name = subdomains + host
  if (name.split('*').length > 2) return false
  // A `*` directly below a top-level domain would match names of all its owners. Below localhost all names are this machine.
  const zone = zoneOf(name)
  if (zone !== undefined && !zone.includes('.') && zone !== 'localhost') return false
  const isLocal = host.endsWith('.localhost') || isLoopback(host.replace(/[[\]]/g, ''))
  if (port === '*' && !isLocal) return false
  // Browsers omit a default port, so an entry with one would never match. URL gives an origin to HTTP's schemes alone.
  const origin = `${scheme === 'http' ? 'http' : 'https'}://${name.replace('*', 'x')}`
  const exact = /\d/.test(port) ? `${origin}:${port}` : origin
  return URL.canParse(exact) && new URL(exact).origin === exact
}

/** What follows the label with the `*`: the domain whose owner decides who gets a name that matches. Undefined without a `*`. */
function zoneOf(name: string): string | undefined {
  return /\*[^.]*\.?(.*)/.exec(name)?.[1]
}

/** Anybody can get a name below these. publicsuffix.org has all. */
const PUBLIC_SUFFIXES: ReadonlySet<string> = new Set(
  `vercel.app now.sh netlify.app pages.dev workers.dev github.io gitlab.io herokuapp.com web.app firebaseapp.com appspot.com
  a.run.app onrender.com fly.dev up.railway.app azurewebsites.net azurestaticapps.net azureedge.net cloudfront.net
  s3.amazonaws.com amplifyapp.com awsapprunner.com deno.dev surge.sh glitch.me repl.co replit.app replit.dev ngrok.io
  ngrok.app ngrok.dev ngrok-free.app trycloudflare.com loca.lt blogspot.com wordpress.com myshopify.com webflow.io
  framer.app wixsite.com lovable.app app.github.dev gitpod.io csb.app stackblitz.io duckdns.org nip.io sslip.io co.uk
  org.uk com.au co.nz co.jp com.br co.in co.za com.cn`.split(/\s+/),
)

/** The public suffix right behind the `*`, whose every customer the pattern would allow; undefined if there is none. */
export function publicSuffixOf(pattern: string): string | undefined {
  const { subdomains = '', host = '' } = partsOf(pattern)
  const zone = zoneOf(subdomains + host)
  return zone !== undefined && PUBLIC_SUFFIXES.has(zone) ? zone : undefined
}

export class OriginList {
  /** Set if exactly one origin, and no pattern, is allowed. Every page is then on this host, so tokens need not say theirs (page.ts). */
  readonly onlyHostname: string | undefined
  readonly #exact: ReadonlySet<string>
  readonly #patterns: readonly RegExp[]

  constructor(patterns: readonly string[]) {
    this.#exact = new Set(patterns.filter(pattern => !pattern.includes('*')))
    this.onlyHostname = patterns.length === 1 ? hostnameOf(patterns[0]!) : undefined
    this.#patterns = patterns.filter(pattern => pattern.includes('*')).map(matcherOf)
  }

  /** @param origin empty if absent */
  allows(origin: string, requireOrigin: boolean): boolean {
    if (origin === '') return !requireOrigin
    if (this.#exact.size === 0 && this.#patterns.length === 0) return true
    return this.#exact.has(origin) || this.#patterns.some(pattern => pattern.test(origin))
  }
}

/** Returns the name without the port; undefined for a pattern, and for `null`, which a page in a sandboxed frame or a file sends. */
export function hostnameOf(origin: string): string | undefined {
  return origin.includes('*') ? undefined : partsOf(origin).host
}

/**
 * True for `null`, and for a page of another host: the demo's sites refuse these unless they name origins. Ports may differ, because
 * proxies leave theirs out of Host.
 */
export function isForeign(origin: string, host: string): boolean {
  const name = /^(?:\[[^\]]*\]|[^:]*)/.exec(host.toLowerCase())![0]
  return origin !== '' && hostnameOf(origin) !== name
}

function matcherOf(pattern: string): RegExp {
  const { scheme, subdomains, host = '', port } = partsOf(pattern)
  const below = subdomains === undefined ? '' : '([a-z0-9_-]+\\.)+'
  const name = host.replace(/[.[\]]/g, '\\$&').replace('*', '[a-z0-9_-]+')
  const anyPort = port === '*' ? '(:\\d{1,5})?' : port === undefined ? '' : `:${port}`
  return new RegExp(`^${scheme}://${below}${name}${anyPort}$`)
}
