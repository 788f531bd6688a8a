/**
 * Start reading here: what is served. FLOWS names the code of each endpoint in domain/endpoint.ts.
 *
 *   request -> Exchange (http/exchange.ts) -> endpoint (endpoints/*.ts) -> domain/*, store -> reply -> Exchange
 */

import { App, type HttpRequest, type HttpResponse, type TemplatedApp } from 'uWebSockets.js'
import type { Work } from './domain/endpoint.ts'
import { ENDPOINT_NAMES, ENDPOINTS, type EndpointName } from './domain/endpoint.ts'
import { challenge } from './endpoints/challenge.ts'
import { type Endpoint, replyStyle, type Service } from './endpoints/service.ts'
import { siteverify, turnstile } from './endpoints/siteverify.ts'
import { verify } from './endpoints/verify.ts'
import { verifyToken } from './endpoints/verify-token.ts'
import type { ContentRoute } from './http/content.ts'
import { Exchange, refuserOf } from './http/exchange.ts'
import type { ExchangeHost, ExchangeRules } from './http/exchange-host.ts'
import { type HeaderList, type Reply, refusalReply, refusedReply } from './http/replies.ts'
import { contentRequest, endsPlainly, queryOf } from './http/request-headers.ts'

type Flow = (service: Service) => Endpoint

const FLOWS: Readonly<Record<EndpointName, Flow>> = {
  challenge,
  verify,
  'verify-token': verifyToken,
  siteverify,
}

/** Some backends can set only a host. hCaptcha's path is /siteverify itself; many clients of Google use GET. */
const VENDOR_FLOWS = [
  { path: '/recaptcha/api/siteverify', flow: siteverify, takesGet: true },
  { path: '/turnstile/v0/siteverify', flow: turnstile, takesGet: false },
] as const

const PREFLIGHT_SECONDS = 86_400
/** Tracing agents add theirs to every fetch. `*` leaves out Authorization, and browsers before 2019 take it for a name. */
const ALLOWED_HEADERS = 'X-Site-Key, Content-Type, Authorization, *'

const AMBIGUOUS_REPLY = refusalReply({ reason: 'length-ambiguous' }, 'plain')
const CONTENT_SHEDDING: Shedding = {
  work: 'new',
  reply: refusalReply({ reason: 'overloaded' }, 'plain', [['Retry-After', '1']]),
}

export function buildApp(
  service: Service,
  host: ExchangeHost,
  contents: readonly ContentRoute[],
): TemplatedApp {
  const app = App()
  for (const name of ENDPOINT_NAMES) addRoute(app, name, service, host)
  for (const { path, flow, takesGet } of VENDOR_FLOWS)
    addRoute(app, 'siteverify', service, host, path, flow, takesGet)
  for (const content of contents) addContent(app, content, host)
  const hasDemo = contents.some(({ path }) => path === '/demo/submit')
  const hint = hasDemo ? { detail: 'There is no such path. The demo page is at /demo.' } : {}
  const notFound = refusalReply({ reason: 'not-found', ...hint }, 'plain')
  const rules = { isCrossOrigin: false, faultReply: notFound, ambiguousReply: AMBIGUOUS_REPLY }
  app.any('/*', always(notFound, host, { part: 'other', ...rules }))
  return app
}

type Handler = (response: HttpResponse, request: HttpRequest) => void

function always(reply: Reply, host: ExchangeHost, rules: ExchangeRules): Handler {
  const answer = (exchange: Exchange) => exchange.answer(reply)
  return seenBy(host, (response, request) => new Exchange(response, request, host, rules).begin(answer))
}

/** Answers requests that are never shed, and lets the gate count them. */
function seenBy({ gate }: ExchangeHost, handler: Handler): Handler {
  if (gate === undefined) return handler
  return (response, request) => {
    if (gate.isShedding) gate.seen()
    handler(response, request)
  }
}

/**
 * One refusal in 64 waits for the tick's end, which ends a connection that pipelines (exchange.ts). Otherwise 10,000 requests
 * would be refused in one tick.
 */
const REFUSALS_PER_EXCHANGE = 64

interface Shedding {
  readonly work: Work
  readonly reply: Reply
}

function unlessOverloaded(
  handler: Handler,
  { work, reply }: Shedding,
  host: ExchangeHost,
  rules: ExchangeRules,
): Handler {
  const { gate } = host
  if (gate === undefined) return handler
  const refuse = refuserOf(reply, host, rules)
  const refuseLater = (exchange: Exchange) => void setImmediate(() => exchange.answer(reply))
  let refusals = 0
  return (response, request) => {
    if (!gate.isShedding || gate.admits(work)) handler(response, request)
    else if (++refusals % REFUSALS_PER_EXCHANGE !== 0 && endsPlainly(request, host.trustedProxies))
      refuse(response, request)
    else new Exchange(response, request, host, rules).begin(refuseLater)
  }
}

function addRoute(
  app: TemplatedApp,
  name: EndpointName,
  service: Service,
  host: ExchangeHost,
  path = `/${name}`,
  flow: Flow = FLOWS[name],
  takesGet = false,
): void {
  const endpoint = flow(service)
  const { method, work, isCrossOrigin, errorStyle } = ENDPOINTS[name]
  const style = replyStyle(name, service.settings)
  const alsoTaken = [...(takesGet ? ['GET'] : []), ...(isCrossOrigin ? ['OPTIONS'] : [])]
  const allow = [method.toUpperCase(), ...alsoTaken].join(', ')
  const wrongMethod = refusalReply({ reason: 'method-not-allowed' }, errorStyle, [['Allow', allow]])
  const ambiguousReply = refusalReply({ reason: 'length-ambiguous' }, errorStyle)
  const rules = {
    part: name,
    isCrossOrigin,
    faultReply: refusedReply(style, { reason: 'internal' }),
    ambiguousReply,
  }
  const step = (exchange: Exchange) => endpoint(exchange, '')
  // Reading the query costs time, so only /siteverify does it.
  const handle: Handler =
    errorStyle === 'siteverify'
      ? (response, request) => {
          const query = queryOf(request)
          new Exchange(response, request, host, rules).begin(exchange => endpoint(exchange, query))
        }
      : (response, request) => new Exchange(response, request, host, rules).begin(step)
  const shedding = { work, reply: refusedReply(style, { reason: 'overloaded' }) }
  const handler = unlessOverloaded(handle, shedding, host, rules)
  app[method](path, handler)
  if (takesGet) app.get(path, handler)
  // Preflights do not count as the endpoint's answers.
  if (isCrossOrigin) app.options(path, always(preflightReply(method), host, { ...rules, part: 'other' }))
  app.any(path, always(wrongMethod, host, rules))
}

function addContent(app: TemplatedApp, content: ContentRoute, host: ExchangeHost): void {
  const { path, methods, isCrossOrigin = false } = content
  const allow = [...methods, ...(isCrossOrigin ? ['options'] : [])].join(', ').toUpperCase()
  const wrongMethod = refusalReply({ reason: 'method-not-allowed' }, 'plain', [['Allow', allow]])
  const rules: ExchangeRules = {
    part: 'content',
    isCrossOrigin: false,
    faultReply: refusalReply({ reason: 'internal' }, 'plain'),
    ambiguousReply: AMBIGUOUS_REPLY,
  }
  const handle: Handler = (response, request) => {
    const asked = contentRequest(request)
    new Exchange(response, request, host, rules).begin(exchange => content.handle(exchange, asked))
  }
  for (const method of methods) {
    const isGet = method === 'get'
    app[method](path, isGet ? unlessOverloaded(handle, CONTENT_SHEDDING, host, rules) : seenBy(host, handle))
  }
  if (isCrossOrigin)
    app.options(path, always(preflightReply('get'), host, { ...rules, isCrossOrigin, part: 'other' }))
  app.any(path, always(wrongMethod, host, rules))
}

function preflightReply(method: 'get' | 'post'): Reply {
  const headers: HeaderList = [
    ['Access-Control-Allow-Methods', method.toUpperCase()],
    ['Access-Control-Allow-Headers', ALLOWED_HEADERS],
    ['Access-Control-Max-Age', String(PREFLIGHT_SECONDS)],
  ]
  return { status: 200, body: '{}', headers }
}
