/** Requests whose end servers may see in different places: what is refused, by which server, and whether any is answered as another. */

import { setTimeout as sleep } from 'node:timers/promises'
import { BEHIND, FrontProxy, PROXY_ADDRESS } from '../../../harness/proxies.ts'
import { type RawAnswer, RawConnection } from '../../../harness/raw-http.ts'
import {
  ALWAYS_EASY,
  type TestService,
  type TestSite,
  UNLIMITED_CHALLENGES,
} from '../../../harness/service.ts'
import { challengeRequest, nonceObserver } from '../../../proxy/observer.ts'
import { type Fate, ROWS, type Row, WAYS, type Way } from '../conformance-rows.ts'
import { type Run, SHEDS_AS_SHIPPED, type TortureCase } from '../run.ts'

const ATTACKER = '127.9.1.1'
const VICTIM = '127.9.1.2'

/** After this time without a byte, no answer is expected. If one was expected, the request is repeated with a longer wait. */
const PATIENCE_MS = 400
const MORE_PATIENCE_MS = [1500, 5000] as const

const WAITS = /(^|, )waits$/

export const httpConformance: TortureCase = {
  number: 2,
  name: 'http-conformance',
  aim: 'each request is answered as the table says, alone and behind each proxy; no request is answered as another',
  fullSize: `${ROWS.length} requests, each by ${WAYS.length} ways, a victim on the same proxy after each`,
  async run(run) {
    const service = await run.service('embedded', {
      ...BEHIND.nginx, // trusts PROXY_ADDRESS, from which HAProxy and the way `trusted` come too
      ...UNLIMITED_CHALLENGES,
      ...(run.isFull ? SHEDS_AS_SHIPPED : {}),
      POWGATE_STORE_DEADLINE_MS: '5000',
    })
    const site = await service.createSite({ difficulty: ALWAYS_EASY })
    await service.untilReady(service.url, site)
    await Promise.all(WAYS.map(way => byWay(run.part(NAMES[way]), way, service, site)))
    run.size(`${ROWS.length} requests each ${Object.values(NAMES).join(', ')}`)
  },
}

const NAMES: Readonly<Record<Way, string>> = {
  visitor: 'from a visitor',
  trusted: 'from a trusted proxy',
  nginx: 'through nginx',
  haproxy: 'through HAProxy',
}

async function byWay(run: Run, way: Way, service: TestService, site: TestSite): Promise<void> {
  const proxy = way === 'nginx' || way === 'haproxy' ? await FrontProxy.start(way, service) : undefined
  run.defer(() => proxy?.stop())
  const port = (proxy ?? service).port
  const isBoundTo = await nonceObserver(service.url, site)
  const isFor = (address: string) => (body: string) => {
    const nonce = /"nonce":"([0-9a-f]{32})"/.exec(body)?.[1]
    return nonce !== undefined && isBoundTo(nonce, address)
  }
  const from = way === 'trusted' ? PROXY_ADDRESS : ATTACKER
  const target: Target = { port, from, marker: challengeRequest(site.siteKey), isMarker: isFor(from) }
  const ask = victimOf(run, port, challengeRequest(site.siteKey), isFor(VICTIM))
  const askVictim = async ({ about }: Row) => {
    if (proxy === undefined) return
    const wrong = await ask()
    run.check(wrong === '', () => `after ${about} a victim got ${wrong}`)
  }
  const look = async (row: Row) => {
    const { about, bytes, fates } = row
    const once = async (patienceMs: number) => {
      const fate = await fateOf(row, target, patienceMs)
      await askVictim(row)
      return fate
    }
    const fate = await patientFate(once, fates[way], run.isFull)
    const sent = () => JSON.stringify(bytes).slice(0, 300)
    run.check(fate === fates[way], () => `${about}: ${fate}, not ${fates[way]}: ${sent()}`)
  }
  // Through a proxy one after the other, so that the victim's request gets the connection that the attack has just used.
  if (proxy !== undefined) for (const row of ROWS) await look(row)
  else await Promise.all(ROWS.map(look)) // each on a connection of its own
}

/** Repeats the request with a longer wait only if nothing came, because an answer might have come later. */
async function patientFate(once: (patienceMs: number) => Promise<Fate>, expected: Fate, isFull: boolean) {
  let fate = await once(PATIENCE_MS)
  for (const patienceMs of MORE_PATIENCE_MS)
    if (fate !== expected && WAITS.test(fate)) fate = await once(patienceMs)
  // A full run waits longer also where nothing is expected to come.
  const isExpectedToWait = fate === expected && WAITS.test(fate)
  return isFull && isExpectedToWait ? once(MORE_PATIENCE_MS[0]) : fate
}

/** Another client of the same proxy, which forwards a connection's first request in another way. @returns asks; '' if all is right */
function victimOf(run: Run, port: number, request: string, isMine: (body: string) => boolean) {
  let connection: RawConnection | undefined
  run.defer(() => connection?.close())
  const isRight = (answer: RawAnswer | undefined) => answer?.status === 200 && isMine(answer.body)
  return async () => {
    const old = connection
    connection = await RawConnection.open(port, VICTIM)
    const first = await connection.request(request)
    // The proxy may have closed an idle connection in the meantime.
    const isOldOpen = old !== undefined && !old.isClosed
    const later = isOldOpen ? await old.request(request) : undefined
    old?.close()
    if (!isRight(first)) return JSON.stringify(first)
    if (!isOldOpen || isRight(later)) return ''
    return JSON.stringify(later) ?? 'no answer on the connection that it had'
  }
}

interface Target {
  readonly port: number
  /** Loopback address to call from. */
  readonly from: string
  /** A second request, sent after the row's own on the same connection. */
  readonly marker: string
  /** Whether an answer belongs to the marker. */
  isMarker(body: string): boolean
}

/** What a strict parser gives: this answer, then the marker's. */
const ACCEPTED = 'accepted'

/** Most tries of a row: with one in 64 bare answers (304) powgate ends the connection, whatever the row (src/http/exchange.ts). */
const TRIES_MAX = 5

async function fateOf(row: Row, target: Target, patienceMs: number): Promise<Fate> {
  for (let tries = 1; ; tries++) {
    const { fate, isEndedByChance } = await tried(row, target, patienceMs)
    if (!isEndedByChance || tries === TRIES_MAX) return fate
  }
}

/** Sends a request unchanged, byte by byte, and determines what happens to it and to its connection. */
async function tried(row: Row, target: Target, patienceMs: number) {
  const connection = await RawConnection.open(target.port, target.from)
  let received = ''
  connection.socket.on('data', chunk => (received += chunk.toString('latin1')))
  /** Waits until something holds, the connection is closed, or the time is over. */
  const until = async (ms: number, holds = () => false) => {
    const giveUpAtMs = performance.now() + ms
    while (!connection.isClosed && !holds() && performance.now() < giveUpAtMs) await sleep(2)
  }
  try {
    await connection.send(row.bytes)
    await until(patienceMs, () => answersIn(received).length > 0)
    await until(30) // a second, wrong answer comes right after the first
    const beforeMarker = answersIn(received)
    if (!connection.isClosed) {
      await connection.send(target.marker)
      await until(patienceMs, () => answersIn(received).some(({ body }) => target.isMarker(body)))
      await until(30)
    }
    const all = answersIn(received)
    const markers = all.filter(({ body }) => target.isMarker(body)).length
    const isInOrder = markers === 1 && target.isMarker(all.at(-1)!.body)
    const words = all.filter(({ body }) => !target.isMarker(body)).map(label)
    if (markers > 1 || (markers === 1 && !isInOrder)) words.push('the marker out of order')
    else if (connection.isClosed && markers === 0) words.push('closed')
    else if (markers === 0) words.push('waits')
    if (beforeMarker.some(({ body }) => target.isMarker(body))) words.push('the marker before it was asked')
    // Rows with this header get a bare answer. If powgate ends the connection with it while the row's further bytes are unread, the
    // kernel resets the connection, and the answer may be lost.
    const isBareLost = all.length === 0 && row.bytes.includes('If-None-Match')
    const isEndedByChance = isBareLost || all.some(answer => answer.isLastBare)
    return { fate: words.length === 0 ? 'ignored' : words.join(', '), isEndedByChance }
  } finally {
    connection.close()
  }
}

interface Answer {
  readonly status: number
  readonly body: string
  /** It has no body, and announces the end of its connection (see TRIES_MAX). */
  readonly isLastBare: boolean
}

/** Rows ask for a file that they have (304), or post to /siteverify, where an error about the secret proves that the body was read. */
function label({ status, body }: Answer): string {
  if (status === 304) return ACCEPTED
  if (status === 200 && body.includes('"invalid-input-secret"')) return ACCEPTED
  if (status === 200 && body.includes('"missing-input-secret"')) return 'accepted without its body'
  return status === 0 ? 'an answer that is not HTTP/1' : String(status)
}

/** The answers in what was received on one connection; the last may be incomplete, and is left out. */
function answersIn(received: string): Answer[] {
  const answers: Answer[] = []
  let rest = received
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    if (!rest.startsWith('HTTP/1.')) {
      answers.push({ status: 0, body: rest, isLastBare: false })
      break
    }
    if (end < 0) break
    const head = rest.slice(0, end)
    const status = Number(head.slice(9, 12))
    const isBare = status === 304 || status === 204 || status < 200
    const from = end + 4
    const body = isBare ? { text: '', end: from } : bodyOf(head, rest, from)
    if (body === undefined) break
    rest = rest.slice(body.end)
    const isLastBare = isBare && /\r\nconnection: close/i.test(head)
    if (status >= 200) answers.push({ status, body: body.text, isLastBare })
  }
  return answers
}

/** @returns undefined if the body is incomplete */
function bodyOf(head: string, text: string, from: number): { text: string; end: number } | undefined {
  if (/\r\ntransfer-encoding: chunked/i.test(head)) {
    const end = text.indexOf('\r\n0\r\n\r\n', from - 2) // an empty body's last chunk begins right after the head
    return end < 0 ? undefined : { text: text.slice(from, end), end: end + 7 }
  }
  const stated = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  // Without a length, the body lasts until the connection is closed (RFC 9112, 6.3).
  const end = stated === undefined ? text.length : from + Number(stated)
  return end > text.length ? undefined : { text: text.slice(from, end), end }
}
