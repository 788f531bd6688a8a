/**
 * Start reading here: what is served. ROUTES joins each endpoint of domain/endpoint.ts with its code; server.ts brings files and pages.
 *
 *   request -> Exchange (http/exchange.ts) -> endpoint (endpoints/*.ts) -> domain/*, store -> reply -> Exchange
 */

import { App, type HttpRequest, type HttpResponse, type TemplatedApp } from 'uWebSockets.js'
import { ENDPOINTS, type EndpointName, type Work } from './domain/endpoint.ts'
import { challenge } from './endpoints/challenge.ts'
import type { Endpoint, Service } from './endpoints/service.ts'
import { siteverify, turnstile } from './endpoints/siteverify.ts'
import { verify } from './endpoints/verify.ts'
import { verifyToken } from './endpoints/verify-token.ts'
import type { ContentRoute } from './http/content.ts'
import { Exchange, refuserOf } from './http/exchange.ts'
import type { ExchangeHost, ExchangeRules } from './http/exchange-host.ts'
import { closedInCrowd } from './http/listener.ts'
import { PLAIN_STYLE, type Reply, refusalReply } from './http/replies.ts'
import { contentRequest, endsPlainly } from './http/request-headers.ts'

interface Route {
  readonly path: string
  readonly name: EndpointName
  readonly build: (service: Service) => Endpoint
  readonly takesGet?: boolean
}

const ROUTES: readonly Route[] = [
  { path: '/challenge', name: 'challenge', build: challenge },
  { path: '/verify', name: 'verify', build: verify },
  { path: '/verify-token', name: 'verify-token', build: verifyToken },
  { path: '/siteverify', name: 'siteverify', build: siteverify },
  // Some backends can set only a host, so they ask at the vendor's path. hCaptcha's is /siteverify; many clients of Google use GET.
  { path: '/recaptcha/api/siteverify', name: 'siteverify', build: siteverify, takesGet: true },
  { path: '/turnstile/v0/siteverify', name: 'siteverify', build: turnstile },
]

const PREFLIGHT_SECONDS = 86_400
/**
 * Tracing agents add headers of their own to every fetch, so any header is allowed. Authorization is named because `*` does not
 * cover it, the others because browsers before 2019 take `*` for a header's name.
 */
const ALLOWED_HEADERS = 'X-Site-Key, Content-Type, Authorization, *'

type Method = ContentRoute['methods'][number]
type Handler = (response: HttpResponse, request: HttpRequest) => void

export function buildApp(
  service: Service,
  host: ExchangeHost,
  contents: readonly ContentRoute[],
): TemplatedApp {
  const app = App()
  for (const route of ROUTES) addEndpoint(app, host, service, route)
  for (const content of contents) addContent(app, host, content)
  const hasDemo = contents.some(({ path }) => path === '/demo/submit')
  const hint = hasDemo ? { detail: 'There is no such path. The demo page is at /demo.' } : {}
  const notFound = refusalReply(PLAIN_STYLE, { reason: 'not-found', ...hint })
  app.any('/*', always(notFound, host, { endpoint: 'other', isCrossOrigin: false, style: PLAIN_STYLE }))
  return app
}

function addEndpoint(
  app: TemplatedApp,
  host: ExchangeHost,
  service: Service,
  { path, name, build, takesGet = false }: Route,
): void {
  const endpoint = build(service)
  const { method, work, isCrossOrigin, limits, errorStyle } = ENDPOINTS[name]
  const policies = limits.map(({ policy, limit }) => [policy, service.settings.limits[limit]])
  const style = { errors: errorStyle, policies: Object.fromEntries(policies) }
  const rules = { endpoint: name, isCrossOrigin, style }
  const handle: Handler = (response, request) => new Exchange(response, request, host, rules).begin(endpoint)
  const overloaded = refusalReply(style, { reason: 'overloaded' })
  const handler = unlessOverloaded(handle, work, overloaded, host, rules)
  addPath(app, host, rules, path, { [method]: handler, ...(takesGet && { get: handler }) }, isCrossOrigin)
}

/** `refusalReply` writes Retry-After, 1 s, only for paths with limits. PLAIN_STYLE has none, so files get theirs here. */
const CONTENT_OVERLOADED: Reply = {
  ...refusalReply(PLAIN_STYLE, { reason: 'overloaded' }),
  headers: [['Retry-After', '1']],
}

function addContent(app: TemplatedApp, host: ExchangeHost, content: ContentRoute): void {
  // False even if other origins may fetch the file: it needs no site key, and brings its CORS headers itself (http/assets.ts).
  const rules: ExchangeRules = { endpoint: 'content', isCrossOrigin: false, style: PLAIN_STYLE }
  const handle: Handler = (response, request) => {
    if (closedInCrowd(host, response)) return
    const asked = contentRequest(request)
    new Exchange(response, request, host, rules).begin(exchange => content.handle(exchange, asked))
  }
  // Only a GET is shed. Refusing a HEAD would cost as much as its answer; the demo's POST has a limit of its own (demo-routes.ts).
  const handleOrShed = unlessOverloaded(handle, content.work ?? 'new', CONTENT_OVERLOADED, host, rules)
  const handleAlways = countedByGate(handle, host)
  const handlers = content.methods.map(method => [method, method === 'get' ? handleOrShed : handleAlways])
  addPath(app, host, rules, content.path, Object.fromEntries(handlers), content.takesPreflight)
}

/** Serves a path, refuses other methods, and answers preflights if pages of any origin may send it headers of their own. */
function addPath(
  app: TemplatedApp,
  host: ExchangeHost,
  rules: ExchangeRules,
  path: string,
  handlers: Readonly<Partial<Record<Method, Handler>>>,
  takesPreflight = false,
): void {
  const methods = Object.keys(handlers) as Method[]
  for (const method of methods) app[method](path, handlers[method]!)
  // A preflight's answer always has CORS headers, and counts as `other`, because it is none of the endpoint's.
  const preflightRules: ExchangeRules = { ...rules, isCrossOrigin: true, endpoint: 'other' }
  if (takesPreflight) app.options(path, always(preflightReply(methods[0]!), host, preflightRules))
  const allow = [...methods, ...(takesPreflight ? ['options'] : [])].join(', ').toUpperCase()
  const refusal = refusalReply(rules.style, { reason: 'method-not-allowed' })
  app.any(path, always({ ...refusal, headers: [['Allow', allow]] }, host, rules))
}

function preflightReply(method: Method): Reply {
  return {
    status: 200,
    body: '{}',
    headers: [
      ['Access-Control-Allow-Methods', method.toUpperCase()],
      ['Access-Control-Allow-Headers', ALLOWED_HEADERS],
      ['Access-Control-Max-Age', String(PREFLIGHT_SECONDS)],
    ],
  }
}

function always(reply: Reply, host: ExchangeHost, rules: ExchangeRules): Handler {
  const answer = (exchange: Exchange) => exchange.answer(reply)
  const handle: Handler = (response, request) => new Exchange(response, request, host, rules).begin(answer)
  return countedByGate(handle, host)
}

/** Tells the gate (http/overload.ts) of requests that are never shed, because they take time too. */
function countedByGate(handler: Handler, { gate }: ExchangeHost): Handler {
  if (gate === undefined) return handler
  return (response, request) => {
    if (gate.isShedding) gate.countOther()
    handler(response, request)
  }
}

/**
 * A client can pipeline 10,000 requests in one read. `refuserOf` answers within the read, so all others would wait for 10,000 refusals.
 * Therefore an exchange makes every 64th refusal, one tick later: uWebSockets.js ends a connection that sends more before its answer.
 */
const REFUSALS_PER_EXCHANGE = 64

function unlessOverloaded(
  handler: Handler,
  work: Work,
  reply: Reply,
  host: ExchangeHost,
  rules: ExchangeRules,
): Handler {
  const { gate } = host
  if (gate === undefined) return handler
  const refuse = refuserOf(reply, host, rules)
  const refuseLater = (exchange: Exchange) => void setImmediate(() => exchange.answer(reply))
  let refusals = 0
  return (response, request) => {
    // If the end of the request is unclear, the exchange finds that, and refuses it for that reason.
    if (!gate.isShedding || gate.admits(work)) handler(response, request)
    else if (++refusals % REFUSALS_PER_EXCHANGE !== 0 && endsPlainly(request, host.trustedProxies))
      refuse(response, request)
    else new Exchange(response, request, host, rules).begin(refuseLater)
  }
}
