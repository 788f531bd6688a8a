/** Requests of every endpoint, a known number of each kind of answer: passed, failed, refused, and limited by every limit. */

import assert from 'node:assert/strict'
import { type Subject, UNKNOWN_SITE_KEY, wrongCounter } from '../contract/support.ts'
import { HONEST_ENVIRONMENT } from '../harness/client.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'

/** `<endpoint> <status> <outcome>` -> how many were sent. */
export type Sent = Map<string, number>

type Send = (from: string) => Promise<Answer>

/** Limits that this load reaches with few requests. */
export const LOAD_ENV = {
  POWGATE_LIMIT_CHALLENGE_ADDRESS: '5',
  POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: '3',
  POWGATE_LIMIT_VERIFY_ADDRESS: '3',
  POWGATE_LIMIT_VERIFY_ADDRESS_SITE: '2',
  POWGATE_LIMIT_REDEEM_ADDRESS: '5',
  POWGATE_LIMIT_REDEEM_API_KEY: '8',
}

export class CountedLoad {
  readonly sent: Sent = new Map()
  readonly #subject: Subject

  constructor(subject: Subject) {
    this.#subject = subject
  }

  /** Sends each from an address of its own unless told which; checks that this status comes back. Returns the last answer. */
  async #send(count: number, what: string, send: Send, from?: string): Promise<Answer> {
    let answer: Answer | undefined
    for (let index = 0; index < count; index++) {
      answer = await send(from ?? freshAddress())
      assert.equal(String(answer.status), what.split(' ')[1], `${what}: ${answer.text}`)
    }
    this.sent.set(what, (this.sent.get(what) ?? 0) + count)
    return answer!
  }

  #call(path: string, method = 'GET'): Send {
    const { url } = this.#subject.service
    return from => call(url + path, { method, from, ...(method === 'POST' && { body: '{}' }) })
  }

  async challenges(): Promise<void> {
    const [site, other] = [await this.#subject.createSite(), await this.#subject.createSite()]
    const challenge =
      ({ siteKey }: { siteKey: string }): Send =>
      from =>
        this.#subject.client.challenge(siteKey, { from })
    await this.#send(7, 'challenge 200 ok', challenge(site))
    await this.#send(2, 'challenge 400 site-key-missing', this.#call('/challenge'))
    await this.#send(4, 'challenge 403 site-unknown', challenge({ siteKey: UNKNOWN_SITE_KEY }))
    await this.#send(2, 'challenge 405 method-not-allowed', this.#call('/challenge', 'POST'))
    await this.#send(2, 'other 200 ok', this.#call('/challenge', 'OPTIONS'))
    const from = freshAddress()
    await this.#send(3, 'challenge 200 ok', challenge(site), from)
    await this.#send(4, 'challenge 429 rate-limited', challenge(site), from) // its limit at the site
    await this.#send(2, 'challenge 200 ok', challenge(other), from)
    await this.#send(3, 'challenge 429 rate-limited', challenge(other), from) // its limit at all sites
  }

  async verifications(): Promise<void> {
    const { client, site } = this.#subject
    const other = await this.#subject.createSite()
    const verify =
      (body: unknown, { siteKey } = site): Send =>
      from =>
        client.verify(siteKey, body, { from })
    await this.#send(2, 'verify 413 body-too-large', verify('x'.repeat(10_000)))
    await this.#send(3, 'verify 400 body-shape', verify('{}'))
    await this.#send(2, 'verify 403 nonce-other-address', verify(await this.#solved(freshAddress())))
    const from = freshAddress()
    await this.#send(2, 'verify 400 body-shape', verify('{}'), from)
    await this.#send(3, 'verify 429 rate-limited', verify('{}'), from) // its limit at the site
    await this.#send(1, 'verify 400 body-shape', verify('{}', other), from)
    await this.#send(2, 'verify 429 rate-limited', verify('{}', other), from) // its limit at all sites
  }

  /** Verifications that are answered with 200: score 1, 0.85, 0.4 and 0, and without a score. */
  async judgements(): Promise<void> {
    const { client, site } = this.#subject
    const blocking = { allow: [], block: ['127.0.0.0/8'] }
    const blocked = await this.#subject.createSite({ plan: 'pro', ipRules: blocking })
    const verify = (body: unknown) => (from: string) => client.verify(site.siteKey, body, { from })
    for (let index = 0; index < 3; index++) await this.#judge('ok', {})
    await this.#judge('ok', { noPlugins: true, notificationDenied: true })
    for (let index = 0; index < 2; index++) await this.#judge('failed', { webdriver: true })
    await this.#judge('failed', { webdriver: true, zeroScreen: true, noLanguages: true })
    const from = freshAddress()
    const solution = await this.#solved(from)
    const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
    await this.#send(1, 'verify 200 failed', verify(wrong), from)
    await this.#send(1, 'verify 200 failed', from => client.verify(blocked.siteKey, solution, { from }))
    const again = freshAddress()
    const spent = await this.#solved(again)
    await this.#send(1, 'verify 200 ok', verify(spent), again)
    await this.#send(1, 'verify 400 nonce-used', verify(spent), again)
  }

  async #judge(outcome: 'ok' | 'failed', flags: object): Promise<Answer> {
    const { client, site } = this.#subject
    const from = freshAddress()
    const environment = { ...HONEST_ENVIRONMENT, ...flags }
    const solution = { ...(await this.#solved(from)), environment }
    const verify: Send = from => client.verify(site.siteKey, solution, { from })
    return this.#send(1, `verify 200 ${outcome}`, verify, from)
  }

  async #solved(from: string) {
    const solution = await this.#subject.client.solved(this.#subject.site.siteKey, { from })
    this.sent.set('challenge 200 ok', (this.sent.get('challenge 200 ok') ?? 0) + 1)
    return solution
  }

  async redemptions(): Promise<void> {
    const { client, site } = this.#subject
    const { apiKey } = await this.#subject.createSite()
    const redeem = (key: string, body: unknown) => (from: string) => client.verifyToken(key, body, { from })
    const { token } = (await this.#judge('ok', {})).json
    await this.#send(1, 'verify-token 200 ok', redeem(site.apiKey, { token }))
    await this.#send(2, 'verify-token 400 token-used', redeem(site.apiKey, { token }))
    await this.#send(2, 'verify-token 401 credentials-missing', this.#call('/verify-token', 'POST'))
    await this.#send(2, 'verify-token 405 method-not-allowed', this.#call('/verify-token'))
    const limited = freshAddress()
    await this.#send(5, 'verify-token 400 body-shape', redeem(apiKey, '{}'), limited)
    await this.#send(2, 'verify-token 429 rate-limited', redeem(apiKey, '{}'), limited) // its address
    await this.#send(3, 'verify-token 400 body-shape', redeem(apiKey, '{}'))
    await this.#send(3, 'verify-token 429 rate-limited', redeem(apiKey, '{}')) // its key
  }

  async others(): Promise<void> {
    await this.#send(5, 'other 404 not-found', this.#call('/challenge/'))
    await this.#send(3, 'content 200 ok', this.#call('/widget.js'))
    await this.#send(2, 'content 405 method-not-allowed', this.#call('/widget.js', 'POST'))
  }
}
