/**
 * Serves the built widget from memory, without rate limit or store. Under load its scripts are refused as late as begun work
 * (http/overload.ts), because a browser asks once for a script, and a form without the widget is lost. The widget asks again for
 * all other files.
 *
 *   /widget.js, /widget/<name>          stable addresses, cached for five minutes, then revalidated by ETag
 *   /compat/<vendor>.js                 likewise, for scripts that replace a vendor's; also at the vendors' own paths
 *   /widget/<name with its hash>        immutable, cached for a year
 *   /widget/<name with another hash>    today's content, not cached: during an upgrade, hosts differ in version
 */

import { existsSync, readFileSync } from 'node:fs'
import { type ContentRoute, type StaticFile, staticFile } from './content.ts'
import type { Exchange } from './exchange.ts'
import { type HeaderList, PLAIN_STYLE, refusalReply } from './replies.ts'
import type { ContentRequest } from './request-headers.ts'

export interface WidgetFile {
  /** The stable name: `worker.js`. */
  readonly name: string
  /** `worker.0123456789.js`. */
  readonly fileName: string
  readonly contentType: string
}

export interface WidgetManifest {
  /** The attribute `integrity` with which pages load widget.js. */
  readonly integrity: string
  readonly files: readonly WidgetFile[]
}

export interface Widget extends WidgetManifest {
  /** A compressed file has its coding's extension. */
  readonly folder: URL
}

export const MANIFEST_NAME = 'manifest.json'
export const BROTLI_ENDING = '.br'
export const GZIP_ENDING = '.gz'

/** The folder of the built widget, as seen from dist/http/ and from src/http/. */
const FOLDERS = ['../widget/', '../../dist/widget/']

export function findWidget(): Widget | undefined {
  for (const path of FOLDERS) {
    const folder = new URL(path, import.meta.url)
    const manifest = new URL(MANIFEST_NAME, folder)
    if (!existsSync(manifest)) continue
    return { ...(JSON.parse(readFileSync(manifest, 'utf8')) as WidgetManifest), folder }
  }
  return undefined
}

/** Browsers use a copy up to a day old while the new one loads, so nobody waits. */
const STABLE = 'public, max-age=300, stale-while-revalidate=86400'
const FOR_EVER = 'public, max-age=31536000, immutable'
const NEVER = 'no-cache'

/** These let any page use a file, even if cross-origin isolated. */
const SHARED_HEADERS: HeaderList = [
  ['Access-Control-Allow-Origin', '*'],
  ['Cross-Origin-Resource-Policy', 'cross-origin'],
  ['Timing-Allow-Origin', '*'],
]

/** Frames and workers obey their own policy, not their page's. */
const FRAME_HEADERS: HeaderList = [
  [
    'Content-Security-Policy',
    // No frame-ancestors: even `*` would exclude pages from files and sandboxes.
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'",
  ],
  // A cross-origin isolated page embeds only frames that set this too.
  ['Cross-Origin-Embedder-Policy', 'require-corp'],
  ['Referrer-Policy', 'no-referrer'],
]
const WORKER_HEADERS: HeaderList = [
  ['Content-Security-Policy', "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"],
  ['Cross-Origin-Embedder-Policy', 'require-corp'],
]
const HEADERS_OF_FILE: Readonly<Record<string, HeaderList>> = {
  'frame.html': FRAME_HEADERS,
  'worker.js': WORKER_HEADERS,
}

const PREFIX = '/widget/'
const HASHED = /^(\/widget\/.+)\.[0-9a-f]{10}(\.[a-z]+)$/
const COMPAT_PREFIX = '/compat/'
const COMPAT_NAME = 'compat-'

/** Paths of the vendors' own scripts, because some products let users set only the host. */
const VENDOR_PATHS: Readonly<Record<string, string>> = {
  '/1/api.js': 'hcaptcha',
  '/recaptcha/api.js': 'recaptcha',
  '/recaptcha/enterprise.js': 'recaptcha',
  '/turnstile/v0/api.js': 'turnstile',
}

export function widgetRoutes({ folder, files }: Widget): ContentRoute[] {
  const byPath = new Map<string, StaticFile>()
  for (const widgetFile of files) {
    const { name, fileName } = widgetFile
    const file = readStatic(folder, widgetFile)
    byPath.set(PREFIX + name, file).set(PREFIX + fileName, file)
    if (name.startsWith(COMPAT_NAME)) byPath.set(COMPAT_PREFIX + name.slice(COMPAT_NAME.length), file)
  }
  byPath.set('/widget.js', byPath.get(`${PREFIX}widget.js`)!)
  for (const [path, vendor] of Object.entries(VENDOR_PATHS))
    byPath.set(path, byPath.get(`${COMPAT_PREFIX}${vendor}.js`)!)
  const notFound = refusalReply(PLAIN_STYLE, { reason: 'not-found' })
  const handle = (exchange: Exchange, asked: ContentRequest): void => {
    const path = asked.path.replace('//', '/')
    const stablePath = path.replace(HASHED, '$1$2')
    const file = byPath.get(path) ?? byPath.get(stablePath)
    if (file === undefined) return exchange.answer(notFound)
    file(exchange, asked, path === stablePath ? STABLE : byPath.has(path) ? FOR_EVER : NEVER)
  }
  const { name, fileName } = files.find(({ name }) => name === 'widget.js')!
  const scripts = [
    '/widget.js',
    PREFIX + name,
    PREFIX + fileName,
    `${COMPAT_PREFIX}*`,
    ...Object.keys(VENDOR_PATHS),
  ]
  const paths = [...scripts, `${PREFIX}*`]
  // Pages that add `/widget.js` to an address that ends with a slash request a path with two slashes.
  return [...paths, ...paths.map(path => `/${path}`)].map(path => ({
    path,
    methods: ['get', 'head'],
    takesPreflight: true,
    work: path.endsWith(`${PREFIX}*`) ? 'new' : 'begun',
    handle,
  }))
}

function readStatic(folder: URL, { name, fileName, contentType }: WidgetFile): StaticFile {
  const read = (ending: string) => readFileSync(new URL(fileName + ending, folder))
  return staticFile(read(''), {
    contentType,
    compressed: { br: read(BROTLI_ENDING), gzip: read(GZIP_ENDING) },
    headers: [...SHARED_HEADERS, ...(HEADERS_OF_FILE[name] ?? [])],
  })
}
