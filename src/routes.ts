/**
 * Start reading here: the table of paths and methods, with their endpoints.
 *
 *   request -> Exchange (http/exchange.ts) -> endpoint (endpoints/*.ts) -> domain/*, store -> reply -> Exchange
 */

import { App, type HttpRequest, type HttpResponse, type TemplatedApp } from 'uWebSockets.js'
import { ChallengeEndpoint } from './endpoints/challenge.ts'
import type { Endpoint, Service } from './endpoints/service.ts'
import { SiteverifyEndpoint } from './endpoints/siteverify.ts'
import { VerifyEndpoint } from './endpoints/verify.ts'
import { VerifyTokenEndpoint } from './endpoints/verify-token.ts'
import type { ContentRoute } from './http/content.ts'
import { Exchange, refuserOf } from './http/exchange.ts'
import type { ExchangeHost, ExchangeRules } from './http/exchange-host.ts'
import { type ErrorStyle, type HeaderList, type Reply, refusalReply } from './http/replies.ts'
import { contentRequest, endsPlainly } from './http/request-headers.ts'

interface Route {
  readonly path: string
  readonly method: 'get' | 'post'
  readonly endpoint: Endpoint
  /** Whether pages of any origin may call the path (CORS). If not, a preflight is answered as a wrong method. */
  readonly isCrossOrigin: boolean
  readonly errorStyle: ErrorStyle
}

const PREFLIGHT_SECONDS = 86_400

const AMBIGUOUS_REPLY = refusalReply({ reason: 'length-ambiguous' }, 'plain')
const OVERLOAD_REPLY = refusalReply({ reason: 'overloaded' }, 'plain', [['Retry-After', '1']])

/** @param contents files and pages to serve: the widget, the demo page, the OpenAPI document */
export function buildApp(
  service: Service,
  host: ExchangeHost,
  contents: readonly ContentRoute[],
): TemplatedApp {
  const routes: readonly Route[] = [
    {
      path: '/challenge',
      method: 'get',
      endpoint: new ChallengeEndpoint(service),
      isCrossOrigin: true,
      errorStyle: 'plain',
    },
    {
      path: '/verify',
      method: 'post',
      endpoint: new VerifyEndpoint(service),
      isCrossOrigin: true,
      errorStyle: 'plain',
    },
    {
      path: '/verify-token',
      method: 'post',
      endpoint: new VerifyTokenEndpoint(service),
      isCrossOrigin: false,
      errorStyle: 'redemption',
    },
    {
      path: '/siteverify',
      method: 'post',
      endpoint: new SiteverifyEndpoint(service),
      isCrossOrigin: false,
      errorStyle: 'siteverify',
    },
  ]
  const app = App()
  for (const route of routes) addRoute(app, route, host)
  for (const content of contents) addContent(app, content, host)
  const notFound = refusalReply({ reason: 'not-found' }, 'plain')
  const rules = { isCrossOrigin: false, faultReply: notFound, ambiguousReply: AMBIGUOUS_REPLY }
  app.any('/*', always(notFound, host, { part: 'other', ...rules }))
  return app
}

type Handler = (response: HttpResponse, request: HttpRequest) => void

/** Answers every request with the same reply. */
function always(reply: Reply, host: ExchangeHost, rules: ExchangeRules): Handler {
  const answer = (exchange: Exchange) => exchange.answer(reply)
  return seenBy(host, (response, request) => new Exchange(response, request, host, rules).begin(answer))
}

/** The handler of a path that is never shed: while other requests are shed, the gate counts this one. */
function seenBy({ gate }: ExchangeHost, handler: Handler): Handler {
  if (gate === undefined) return handler
  return (response, request) => {
    if (gate.isShedding) gate.seen()
    handler(response, request)
  }
}

/**
 * One in this many refusals is answered by an exchange, at the end of the turn. If another request follows before that,
 * uWebSockets.js closes the connection. A connection can pipeline 10,000 requests; this bounds how many of them are refused
 * in one turn.
 */
const REFUSALS_PER_EXCHANGE = 64

/** The handler, or a refusal if the request is shed. */
function unlessOverloaded(handler: Handler, reply: Reply, host: ExchangeHost, rules: ExchangeRules): Handler {
  const { gate } = host
  if (gate === undefined) return handler
  const refuse = refuserOf(reply, host, rules)
  const refuseLater = (exchange: Exchange) => void setImmediate(() => exchange.answer(reply))
  let refusals = 0
  return (response, request) => {
    if (!gate.isShedding || gate.admits(rules.part)) handler(response, request)
    else if (++refusals % REFUSALS_PER_EXCHANGE !== 0 && endsPlainly(request, host.trustedProxies))
      refuse(response)
    else new Exchange(response, request, host, rules).begin(refuseLater)
  }
}

function addRoute(app: TemplatedApp, route: Route, host: ExchangeHost): void {
  const { path, method, endpoint, isCrossOrigin, errorStyle } = route
  const allow = isCrossOrigin ? `${method.toUpperCase()}, OPTIONS` : method.toUpperCase()
  const wrongMethod = refusalReply({ reason: 'method-not-allowed' }, errorStyle, [['Allow', allow]])
  const ambiguousReply = refusalReply({ reason: 'length-ambiguous' }, errorStyle)
  const rules = {
    part: endpoint.name,
    isCrossOrigin,
    faultReply: endpoint.refusals.faultReply,
    ambiguousReply,
  }
  const step = (exchange: Exchange) => endpoint.handle(exchange)
  const handle: Handler = (response, request) => new Exchange(response, request, host, rules).begin(step)
  app[method](path, unlessOverloaded(handle, endpoint.refusals.overloadReply, host, rules))
  // Preflights are not counted among the endpoint's answers.
  if (isCrossOrigin) app.options(path, always(preflightReply(method), host, { ...rules, part: 'other' }))
  app.any(path, always(wrongMethod, host, rules))
}

function addContent(app: TemplatedApp, content: ContentRoute, host: ExchangeHost): void {
  const { path, methods } = content
  const allow = methods.map(method => method.toUpperCase()).join(', ')
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
    app[method](path, isGet ? unlessOverloaded(handle, OVERLOAD_REPLY, host, rules) : seenBy(host, handle))
  }
  app.any(path, always(wrongMethod, host, rules))
}

function preflightReply(method: 'get' | 'post'): Reply {
  const headers: HeaderList = [
    ['Access-Control-Allow-Methods', method.toUpperCase()],
    ['Access-Control-Allow-Headers', 'X-Site-Key, Content-Type'],
    ['Access-Control-Max-Age', String(PREFLIGHT_SECONDS)],
  ]
  return { status: 200, body: '{}', headers }
}
