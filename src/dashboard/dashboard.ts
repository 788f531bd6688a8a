/** Routes of the admin port: the dashboard, whose history grows every ten seconds, and files for Grafana and Prometheus. */

import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { type AdminRoute, type Supervisor, sendJson } from '../admin/admin-server.ts'
import type { Config } from '../config/config.ts'
import { raisedBits } from '../domain/site.ts'
import type { Totals } from '../metrics/totals.ts'
import type { Backends } from '../process/backends.ts'
import type { HostRegistry } from '../process/host-registry.ts'
import type { SiteMemory } from '../process/site-memory.ts'
import { OTHER_SITES, RANGES } from './data.ts'
import { ADD_MS, type DashboardData, History } from './history.ts'
import { type ServiceState, serviceState } from './service-state.ts'

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** These files are served as they are. */
const FILES = [
  ['/dashboard', 'dashboard.html', 'text/html; charset=utf-8'],
  ['/dashboard/app.js', 'app.js', 'text/javascript; charset=utf-8'],
  ['/dashboard/app.css', 'app.css', 'text/css; charset=utf-8'],
  ['/grafana.json', 'grafana.json', 'application/json'],
  ['/alerts.yml', 'alerts.yml', 'application/yaml'],
] as const

export function startDashboard(
  config: Config,
  totals: Totals,
  supervisor: Supervisor,
  siteMemory: SiteMemory,
  hosts: HostRegistry,
  backends: Backends,
): AdminRoute[] {
  if (config.adminPort === undefined) return []
  const nameOf = (siteKey: string) => {
    const site = siteMemory.site(siteKey)
    const bits = site === undefined ? 0 : raisedBits(site, Date.now())
    return bits === 0 ? site?.name : `${site!.name} (raised by ${bits})`
  }
  // Unix time may be set, as by NTP after boot: measured by it, the history's steps would have a wrong length and age.
  const nowMs = () => Math.round(performance.now())
  const history = new History(nowMs(), nameOf, () => Date.now() - nowMs())
  setInterval(async () => {
    await supervisor.askStats()
    history.add(nowMs(), { values: totals.values(), sites: totals.sites() })
  }, ADD_MS).unref()
  const isUnknown = (siteKey: string) => siteMemory.isLoaded && siteMemory.site(siteKey) === undefined
  return dashboardRoutes(history, isUnknown, () => serviceState(config, totals, supervisor, hosts, backends))
}

/**
 * @param isUnknownSite false also while the sites have not been read: the store may be away
 * @param assets folder of FILES
 */
export function dashboardRoutes(
  history: History,
  isUnknownSite: (siteKey: string) => boolean,
  state: () => ServiceState,
  assets = new URL('.', import.meta.url),
): AdminRoute[] {
  return [
    {
      path: '/',
      handle(_, response) {
        // The location is relative, because a proxy may put the admin port below another path.
        response.setHeader('Location', 'dashboard')
        send(response, 302, 'text/plain; charset=utf-8', '')
      },
    },
    ...FILES.map(([path, file, type]): AdminRoute => {
      const body = readFileSync(new URL(file, assets))
      return { path, handle: (_, response) => send(response, 200, type, body) }
    }),
    {
      path: '/dashboard/data.json',
      handle: (_, response, query) => {
        const range = RANGES.find(range => range === (query.get('range') ?? '30m'))
        if (range === undefined)
          return sendJson(response, 400, { error: `range: expected ${RANGES.join(' or ')}` })
        const site = query.get('site') || null
        const view = history.view(range, site)
        const hasRequests = view.sites.some(({ siteKey }) => siteKey === site)
        const isUnknown = site !== null && site !== OTHER_SITES && !hasRequests && isUnknownSite(site)
        const data: DashboardData = { ...view, isUnknown, service: state() }
        sendJson(response, 200, data)
      },
    },
  ]
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    'Referrer-Policy': 'no-referrer',
  })
  response.end(body)
}
