/**
 * Requests that servers parse in different ways, sent directly to powgate and through nginx and HAProxy. The case checks what
 * is refused, by which server, and whether any request is ever answered as another one.
 */

import { BEHIND, FrontProxy, PROXY_ADDRESS } from '../../harness/proxies.ts'
import { RawConnection } from '../../harness/raw-http.ts'
import { type TestService, type TestSite, UNLIMITED_CHALLENGES } from '../../harness/service.ts'
import { challengeRequest, NonceObserver, untilReady } from '../../proxy/observer.ts'
import { fateOf, type Target } from '../conformance.ts'
import { type Row, SECTIONS, WAYS, type Way } from '../conformance-rows.ts'
import { EASY } from '../redemptions.ts'
import { type Run, SHEDS_AS_SHIPPED, type TortureCase } from '../run.ts'

const ATTACKER = '127.9.1.1'
const VICTIM = '127.9.1.2'

/** After this time without a byte, no answer is expected. If one was expected, the request is repeated with a longer wait. */
const PATIENCE_MS = 400
const MORE_PATIENCE_MS = [1500, 5000] as const

const WAITS = /(^|, )waits$/

const ALL: readonly Row[] = SECTIONS.flatMap(({ rows }) => rows)

export const httpConformance: TortureCase = {
  number: 2,
  name: 'http-conformance',
  aim: 'each request is answered as the table says, alone and behind each proxy; no request is answered as another',
  fullSize: `${ALL.length} requests, each by ${WAYS.length} ways, a victim on the same proxy after each`,
  async run(run) {
    const service = await run.service('embedded', {
      ...BEHIND.nginx,
      ...UNLIMITED_CHALLENGES,
      ...(run.isFull ? SHEDS_AS_SHIPPED : {}),
      POWGATE_STORE_DEADLINE_MS: '5000',
    })
    const site = await service.createSite({ difficulty: EASY })
    await untilReady(service.url, site)
    const requests = await Promise.all(WAYS.map(way => byWay(run, way, service, site)))
    run.size(WAYS.map((way, index) => `${requests[index]} requests ${NAMES[way]}`).join(', '))
  },
}

const NAMES: Readonly<Record<Way, string>> = {
  visitor: 'from a visitor',
  trusted: 'from a trusted proxy',
  nginx: 'through nginx',
  haproxy: 'through HAProxy',
}

/** @returns how many requests were sent, without those of victims and markers */
async function byWay(run: Run, way: Way, service: TestService, site: TestSite): Promise<number> {
  const proxy = way === 'nginx' || way === 'haproxy' ? await FrontProxy.start(way, service) : undefined
  run.defer(() => proxy?.stop())
  const port = (proxy ?? service).port
  const observer = await NonceObserver.create(service.url, site)
  const isFor = (address: string) => (body: string) => {
    const nonce = /"nonce":"([0-9a-f]{32})"/.exec(body)?.[1]
    return nonce !== undefined && observer.isBoundTo(nonce, address)
  }
  const from = way === 'trusted' ? PROXY_ADDRESS : ATTACKER
  const target: Target = { port, from, marker: challengeRequest(site.siteKey), isMarker: isFor(from) }
  const victim = new Victim(port, challengeRequest(site.siteKey), isFor(VICTIM))
  run.defer(() => victim.close())
  const askVictim = async ({ about }: Row) => {
    if (proxy === undefined) return
    const wrong = await victim.ask()
    run.check(wrong === '', () => `${NAMES[way]}: after ${about} a victim got ${wrong}`)
  }
  const look = async (row: Row) => {
    const fate = await patientFate(run, row, target, row.fates[way], askVictim)
    run.check(
      fate === row.fates[way],
      () =>
        `${NAMES[way]}: ${row.about}: ${fate}, not ${row.fates[way]}: ${JSON.stringify(row.bytes).slice(0, 300)}`,
    )
  }
  if (proxy === undefined) {
    await Promise.all(ALL.map(look)) // each on a connection of its own
    return ALL.length
  }
  // One after the other, so that the victim's request gets the connection that the attack has just used.
  for (const row of ALL) await look(row)
  return ALL.length
}

/** Repeats the request with a longer wait only if nothing came, because an answer might have come later. */
async function patientFate(
  run: Run,
  row: Row,
  target: Target,
  expected: string,
  afterEach: (row: Row) => Promise<void>,
): Promise<string> {
  const once = async (patienceMs: number) => {
    const fate = await fateOf(row, target, patienceMs)
    await afterEach(row)
    return fate
  }
  let fate = await once(PATIENCE_MS)
  for (const patienceMs of MORE_PATIENCE_MS)
    if (fate !== expected && WAITS.test(fate)) fate = await once(patienceMs)
  if (run.isFull && WAITS.test(fate)) fate = await once(MORE_PATIENCE_MS[0])
  return fate
}

/** Another client of the same proxy. Proxies forward the first request of a connection in another way than later ones. */
class Victim {
  readonly #port: number
  readonly #request: string
  readonly #isMine: (body: string) => boolean
  #connection: RawConnection | undefined

  constructor(port: number, request: string, isMine: (body: string) => boolean) {
    this.#port = port
    this.#request = request
    this.#isMine = isMine
  }

  /** @returns what is wrong; empty if nothing is */
  async ask(): Promise<string> {
    const fresh = await RawConnection.open(this.#port, VICTIM)
    const first = await fresh.request(this.#request)
    const old = this.#connection
    // The proxy may have closed an idle connection in the meantime.
    const isIdle = old !== undefined && !old.isClosed
    const later = isIdle ? await old.request(this.#request) : undefined
    const isLaterRight = !isIdle || this.#isRight(later)
    old?.close()
    this.#connection = fresh
    if (!this.#isRight(first)) return JSON.stringify(first)
    return isLaterRight ? '' : (JSON.stringify(later) ?? 'no answer on the connection that it had')
  }

  #isRight(answer: { status: number; body: string } | undefined): boolean {
    return answer?.status === 200 && this.#isMine(answer.body)
  }

  close(): void {
    this.#connection?.close()
  }
}
