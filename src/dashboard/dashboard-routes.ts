/** Routes of the admin port: the dashboard, and files for Grafana and Prometheus. */

import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { AdminRoute } from '../admin/admin-server.ts'
import { OTHER_SITES, RANGES, type ServiceState } from './data.ts'
import type { DashboardData, History } from './history.ts'
import type { SiteNames } from './site-names.ts'

/** The page before its script runs, and without script. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>powgate dashboard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="dashboard/app.css">
<script src="dashboard/app.js" type="module"></script>
</head>
<body>
<a class="skip" href="#plots">Skip to the plots</a>
<header>
  <h1>powgate <span id="place"></span></h1>
  <p id="freshness">Waiting for the first numbers</p>
  <div class="controls">
    <fieldset>
      <legend>Range</legend>
      <label><input type="radio" name="range" value="30m" checked><span>30 min</span></label>
      <label><input type="radio" name="range" value="24h"><span>24 h</span></label>
    </fieldset>
    <label class="choice">Site <select id="site"><option value="">All sites</option></select></label>
    <label class="choice">Theme <select id="theme">
      <option value="">System</option><option value="light">Light</option><option value="dark">Dark</option>
    </select></label>
  </div>
</header>
<main>
<div id="problems" role="status"></div>
<noscript><p class="problem bad">This page draws its plots by a script. Numbers without one: <a href="metrics">metrics</a>,
<a href="dashboard/data.json">data.json</a>.</p></noscript>
<div class="layout">
<section id="tiles" aria-label="Now"></section>
<div id="plots" tabindex="-1"></div>
</div>
</main>
<footer>
  <p>Counted since <span id="since">the start</span>, in memory: a restart of powgate begins anew. For what must be kept:
  <a href="metrics">Prometheus metrics</a> and a <a href="grafana.json" download="powgate-grafana.json">dashboard for
  Grafana</a>.</p>
</footer>
</body>
</html>
`

interface DashboardSources {
  readonly history: History
  readonly siteNames: SiteNames
  readonly state: () => ServiceState
}

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

const HTML = 'text/html; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'
const JSON_TYPE = 'application/json'
const YAML = 'application/yaml'

/** @param assets folder with app.js, app.css, grafana.json and alerts.yml */
export function dashboardRoutes(
  { history, siteNames, state }: DashboardSources,
  assets = new URL('.', import.meta.url),
): AdminRoute[] {
  return [
    {
      path: '/',
      handle(_, response) {
        // Relative: a proxy may put the admin port below another path.
        response.setHeader('Location', 'dashboard')
        send(response, 302, 'text/plain; charset=utf-8', '')
      },
    },
    constant('/dashboard', HTML, PAGE),
    constant('/dashboard/app.js', SCRIPT, readFileSync(new URL('app.js', assets))),
    constant('/dashboard/app.css', STYLE, readFileSync(new URL('app.css', assets))),
    constant('/grafana.json', JSON_TYPE, readFileSync(new URL('grafana.json', assets))),
    constant('/alerts.yml', YAML, readFileSync(new URL('alerts.yml', assets))),
    {
      path: '/dashboard/data.json',
      handle: async (_, response, query) => {
        const asked = query.get('range') ?? '30m'
        const range = RANGES.find(range => range === asked)
        if (range === undefined) {
          send(response, 400, JSON_TYPE, JSON.stringify({ error: `range: expected ${RANGES.join(' or ')}` }))
          return
        }
        const site = query.get('site') || null
        const siteKeys = history.siteKeys(range)
        const isSilent = site !== null && site !== OTHER_SITES && !siteKeys.includes(site)
        await siteNames.refresh(isSilent ? [site, ...siteKeys] : siteKeys)
        const isUnknown = isSilent && siteNames.isUnknown(site)
        const data: DashboardData = { ...history.view(range, site), isUnknown, service: state() }
        send(response, 200, JSON_TYPE, JSON.stringify(data))
      },
    },
  ]
}

function constant(path: string, type: string, body: string | Buffer): AdminRoute {
  return { path, handle: (_, response) => send(response, 200, type, body) }
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
