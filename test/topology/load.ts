/**
 * A steady, bounded load of whole flows on a service whose Redis is changing under it, and the history of every token:
 * what was asked, when, and what came back. What got no answer, or 503, may have happened or not.
 */

import { QuickClient } from '../contract/support.ts'
import { eventually } from '../harness/eventually.ts'
import { type Answer, freshAddress } from '../harness/http.ts'
import type { TestService, TestSite } from '../harness/service.ts'

export interface Sample {
  readonly endpoint: 'challenge' | 'verify' | 'verify-token'
  /** Of sites, where it went. */
  readonly siteIndex: number
  readonly startedMs: number
  readonly tookMs: number
  /** undefined: no answer came. */
  readonly status: number | undefined
  readonly code: string | undefined
  /** undefined: a token that the service never issued. */
  readonly token: string | undefined
}

export interface Issued {
  readonly token: string
  readonly siteIndex: number
  readonly issuedMs: number
  /** Of its redemptions, in the order of their end. */
  readonly attempts: Sample[]
}

/** How long the service may take until it is well again; a machine of its own needs a few seconds. */
export const WELL_MS = 60_000
const LANES = 4
const FLOW_PAUSE_MS = 200
const STRANGER_PAUSE_MS = 50
/** Between the redemptions of one token: two at once, and one later. */
const LATER_MS = 1500

export class Load {
  readonly samples: Sample[] = []
  readonly issued: Issued[] = []
  readonly #service: TestService
  readonly #client: QuickClient
  readonly #sites: readonly TestSite[]
  #isOn = true
  #lanes: Promise<void>[] = []
  readonly #later = new Set<Promise<void>>()

  constructor(service: TestService, sites: readonly TestSite[]) {
    this.#service = service
    this.#client = new QuickClient(service.url)
    this.#sites = sites
  }

  start(): void {
    for (let lane = 0; lane < LANES; lane++) this.#lanes.push(this.#flows(lane))
    this.#lanes.push(this.#strangers())
  }

  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#lanes)
    await Promise.all(this.#later)
  }

  /** Challenge, verify, redeem; each lane goes round the sites. */
  async #flows(lane: number): Promise<void> {
    for (let turn = lane; this.#isOn; turn++) {
      const siteIndex = turn % this.#sites.length
      const token = await this.#token(siteIndex)
      if (token !== undefined) {
        await Promise.all([1, 2].map(() => this.redeem(token)))
        const later = pause(LATER_MS).then(() => this.redeem(token))
        this.#later.add(later)
        void later.finally(() => this.#later.delete(later))
      }
      await pause(FLOW_PAUSE_MS)
    }
  }

  async #token(siteIndex: number): Promise<Issued | undefined> {
    const { siteKey } = this.#sites[siteIndex]!
    const from = freshAddress()
    const challenge = await this.#timed('challenge', siteIndex, () =>
      this.#client.challenge(siteKey, { from }),
    )
    if (challenge?.status !== 200) return undefined
    const solution = this.#client.solution(challenge)
    const verified = await this.#timed('verify', siteIndex, () =>
      this.#client.verify(siteKey, solution, { from }),
    )
    if (verified?.json?.passed !== true) return undefined
    const issued = { token: verified.json.token, siteIndex, issuedMs: performance.now(), attempts: [] }
    this.issued.push(issued)
    return issued
  }

  async redeem(issued: Issued): Promise<void> {
    const { apiKey } = this.#sites[issued.siteIndex]!
    const { token } = issued
    const ask = () => this.#client.verifyToken(apiKey, { token }, { from: freshAddress() })
    await this.#timed('verify-token', issued.siteIndex, ask, issued)
  }

  /** Challenges that nobody solves, and tokens that nobody issued. */
  async #strangers(): Promise<void> {
    for (let turn = 0; this.#isOn; turn++) {
      const siteIndex = turn % this.#sites.length
      const { siteKey, apiKey } = this.#sites[siteIndex]!
      const from = freshAddress()
      await this.#timed('challenge', siteIndex, () => this.#client.challenge(siteKey, { from }))
      await this.#timed('verify-token', siteIndex, () =>
        this.#client.verifyToken(apiKey, { token: `${Date.now()}|nobody|1|issued|this` }, { from }),
      )
      await pause(STRANGER_PAUSE_MS)
    }
  }

  async #timed(
    endpoint: Sample['endpoint'],
    siteIndex: number,
    ask: () => Promise<Answer>,
    issued?: Issued,
  ): Promise<Answer | undefined> {
    const startedMs = performance.now()
    const answer = await ask().catch(() => undefined)
    const tookMs = performance.now() - startedMs
    const { status, json } = answer ?? {}
    const token = issued?.token
    const sample = { endpoint, siteIndex, startedMs, tookMs, status, code: json?.code, token }
    this.samples.push(sample)
    issued?.attempts.push(sample)
    return answer
  }

  /** Returns when that was so. */
  async untilWell(fromMs: number): Promise<number> {
    let sinceMs = fromMs
    const what = () =>
      `the service is well: ${this.describe(performance.now() - 3000)}\n${this.#service.output}`
    await eventually(WELL_MS, what, async () => {
      if (this.isWell(sinceMs)) return true
      // The last to end may have been sent before then, and another one after.
      const bad = this.samples.findLast(
        ({ status, startedMs }) => startedMs >= sinceMs && (status === 503 || status === undefined),
      )
      if (bad !== undefined) sinceMs = bad.startedMs + bad.tookMs
      await pause(50)
      return false
    })
    return performance.now()
  }

  /** What came back since then. */
  describe(sinceMs: number): string {
    const recent = this.samples.filter(({ startedMs }) => startedMs >= sinceMs)
    return JSON.stringify(
      countBy(recent, one => `${one.endpoint} ${one.siteIndex} ${one.status} ${one.code}`),
    )
  }

  /** Whether, since then, every site had tokens redeemed and nobody was told 503. */
  isWell(sinceMs: number): boolean {
    const recent = this.samples.filter(({ startedMs }) => startedMs >= sinceMs)
    if (recent.some(({ status }) => status === 503 || status === undefined)) return false
    const redeemed = new Set(
      recent
        .filter(({ endpoint, status }) => endpoint === 'verify-token' && status === 200)
        .map(({ siteIndex }) => siteIndex),
    )
    return redeemed.size === this.#sites.length
  }
}

function countBy<T>(all: readonly T[], keyOf: (one: T) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of all) counts[keyOf(one)] = (counts[keyOf(one)] ?? 0) + 1
  return counts
}

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
