/** Routes of the admin port: the dashboard, and files for Grafana and Prometheus. */

import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { type AdminRoute, sendJson } from '../admin/admin-server.ts'
import { OTHER_SITES, RANGES } from './data.ts'
import type { DashboardData, History } from './history.ts'
import type { ServiceState } from './service-state.ts'
import type { SiteNames } from './site-names.ts'

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

/** @param assets folder of FILES */
export function dashboardRoutes(
  history: History,
  siteNames: SiteNames,
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
      handle: async (_, response, query) => {
        const range = RANGES.find(range => range === (query.get('range') ?? '30m'))
        if (range === undefined)
          return sendJson(response, 400, { error: `range: expected ${RANGES.join(' or ')}` })
        const site = query.get('site') || null
        await siteNames.refresh()
        const view = history.view(range, site)
        const hasRequests = view.sites.some(({ siteKey }) => siteKey === site)
        const isUnknown = site !== null && site !== OTHER_SITES && !hasRequests && siteNames.isUnknown(site)
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
