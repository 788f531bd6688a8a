/** The demo's routes: its pages and files, and the form's target, which takes the form and has backend.ts judge it. */

import { readFileSync } from 'node:fs'
import { type Address, formatAddress, formatVisitor } from '../addresses/address.ts'
import { type Config, localUrl } from '../config/config.ts'
import type { Ending } from '../domain/ending.ts'
import { OUTCOMES, type Reason } from '../domain/outcome.ts'
import { type ContentRoute, type StaticFile, staticFile } from '../http/content.ts'
import type { Exchange } from '../http/exchange.ts'
import { type HeaderList, PLAIN_STYLE, type Reply, refusalReply } from '../http/replies.ts'
import type { PuzzleName } from '../protocol/proof.ts'
import { decide, type FormDecision, readForm, redeem } from './backend.ts'
import { FORM_PAGE, resultPage } from './pages.ts'
import { demoApiKey } from './site.ts'

/** Fits a message of 1,000 characters, the most that pages.ts allows, urlencoded in at most nine bytes each. */
const BODY_BYTES_MAX = 16_384

/** A strict policy, without an exception for the widget. */
const PAGE_HEADERS: HeaderList = [
  [
    'Content-Security-Policy',
    [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "frame-src 'self'",
      "worker-src 'self'",
      "img-src 'self' data:",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  ],
  ['Referrer-Policy', 'same-origin'],
]
const HTML = 'text/html; charset=utf-8'

export function demoRoutes(config: Config, secret: string): ContentRoute[] {
  const form = staticFile(Buffer.from(FORM_PAGE), { contentType: HTML, headers: PAGE_HEADERS })
  const apiKeys = { sha256: demoApiKey(secret, 'sha256'), hashwx: demoApiKey(secret, 'hashwx') }
  return [
    file('/demo', form),
    file('/demo/demo.css', readStatic('demo.css', 'text/css; charset=utf-8')),
    file('/demo/demo.js', readStatic('demo.js', 'text/javascript; charset=utf-8')),
    { path: '/demo/submit', methods: ['post'], handle: exchange => handleSubmit(exchange, config, apiKeys) },
  ]
}

const OFF = refusalReply(PLAIN_STYLE, {
  reason: 'not-found',
  detail: 'The demo page is off. It is on from the first start until the next, and with POWGATE_DEMO=on.',
})

export const DEMO_OFF: ContentRoute = {
  path: '/demo',
  methods: ['get', 'head', 'post'],
  handle: exchange => exchange.answer(OFF),
}

/** The most forms of one visitor that a worker takes. Other workers count apart. */
const FORMS_PER_MINUTE = 10
const MINUTE_MS = 60_000
/** Bounds the memory: beyond so many visitors, the one whose last admitted form is oldest is forgotten. */
const VISITORS_MAX = 10_000
/** When each visitor's admitted forms came, by `performance.now`; older than a minute, they go with the next one. */
const formTimes = new Map<string, readonly number[]>()

/** Admits a visitor's form, and limits each visitor, so that one cannot exhaust the demo's limit for everybody. */
function admit(address: Address, ipv6PrefixBits: number): boolean {
  const key = formatVisitor(address, ipv6PrefixBits)
  const nowMs = performance.now()
  const times = (formTimes.get(key) ?? []).filter(ms => nowMs - ms < MINUTE_MS)
  if (times.length >= FORMS_PER_MINUTE) return false
  formTimes.delete(key) // so that the visitor is the last
  formTimes.set(key, [...times, nowMs])
  if (formTimes.size > VISITORS_MAX) formTimes.delete(formTimes.keys().next().value!)
  return true
}

function file(path: string, content: StaticFile): ContentRoute {
  return { path, methods: ['get', 'head'], handle: (exchange, asked) => content(exchange, asked, 'no-store') }
}

function readStatic(name: string, contentType: string): StaticFile {
  return staticFile(readFileSync(new URL(name, import.meta.url)), { contentType })
}

const NO_TOKEN =
  'The form came without a token. Go back, allow JavaScript, wait for the word Verified, and send it again.'
const URLENCODED = /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i

function handleSubmit(exchange: Exchange, config: Config, apiKeys: Record<PuzzleName, string>): void {
  const { address } = exchange
  const answer = (decision: FormDecision) => exchange.answer(decisionReply(decision))
  const refuse = (status: number, code: string, text: string) =>
    answer({ status, accepted: false, title: 'Not accepted', text, code })
  exchange.readBody(BODY_BYTES_MAX, body => {
    if (body === undefined) return refuse(413, 'body-too-large', 'The form is too large.')
    if (!URLENCODED.test(exchange.contentType))
      return refuse(415, 'content-type', 'The form must be sent urlencoded.')
    const form = readForm(body.toString('utf8'))
    if (form.token === '') return refuse(400, 'no-token', NO_TOKEN)
    if (!admit(address, config.ipv6PrefixBits))
      return refuse(429, 'rate-limited', 'Too many forms. Wait a minute, then try again.')
    // `redeem` never rejects, and `guard` takes what `decide` may throw.
    redeem(localUrl(config), apiKeys[form.puzzle], {
      token: form.token,
      expectedIp: formatAddress(address),
    }).then(exchange.guard(redemption => answer(decide(form, redemption))))
  })
}

/** The reasons of a code that only the demo has, and of one that many reasons share: here the token has a wrong shape. */
const OTHERS: Readonly<Record<string, Reason>> = { 'no-token': 'token-missing', 'invalid-body': 'body-shape' }

/**
 * Why a form is not accepted, for the log and metrics, by the code that its page shows. Several reasons may share a code: then one of a
 * token is taken, else the first. Undefined if the form is accepted, or the service did not answer.
 */
function endingOf(code: string | null): Ending | undefined {
  const shared = (Object.keys(OUTCOMES) as Reason[]).filter(reason => OUTCOMES[reason].code === code)
  const ofToken = shared.find(reason => OUTCOMES[reason].category === 'tokens')
  const reason = OTHERS[code ?? ''] ?? ofToken ?? shared[0]
  return reason && { kind: 'refused', refusal: { reason } }
}

function decisionReply(decision: FormDecision): Reply {
  return {
    status: decision.status,
    ending: endingOf(decision.code),
    body: resultPage(decision),
    headers: [
      ['Content-Type', HTML],
      ['Cache-Control', 'no-store'],
      ['X-Content-Type-Options', 'nosniff'],
      ...PAGE_HEADERS,
    ],
    hasOwnType: true,
  }
}
