/** Sends every kind of request a known number of times. */

import assert from 'node:assert/strict'
import { apiKeyId } from '../../src/domain/site.ts'
import { mintToken } from '../../src/domain/token.ts'
import { revokeApiKey } from '../../src/sites/sites.ts'
import {
  claimsOf,
  freshFingerprint,
  keyring,
  type Subject,
  UNKNOWN_SITE_KEY,
  wrongCounter,
} from '../contract/support.ts'
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

  /** Sends from an address of its own unless told which, and checks that this status came back. */
  async #send(what: string, send: Send, from = freshAddress()): Promise<Answer> {
    const answer = await send(from)
    const [, status] = what.split(' ')
    assert.equal(String(answer.status), status, `${what}: ${answer.text}`)
    this.sent.set(what, (this.sent.get(what) ?? 0) + 1)
    return answer
  }

  async #times(count: number, what: string, send: Send, from?: string): Promise<void> {
    for (let index = 0; index < count; index++) await this.#send(what, send, from)
  }

  get #url(): string {
    return this.#subject.service.url
  }

  /** Of sites besides the subject's own, which only what must pass uses. */
  async challenges(): Promise<void> {
    const { client } = this.#subject
    const [site, other] = [await this.#subject.createSite(), await this.#subject.createSite()]
    const closed = await this.#subject.createSite({ active: false })
    const choosy = await this.#subject.createSite({ origins: ['https://a.example'] })
    const challenge =
      (siteKey: string, headers = {}) =>
      (from: string) =>
        client.challenge(siteKey, { from, headers })
    await this.#times(7, 'challenge 200 ok', challenge(site.siteKey))
    await this.#times(2, 'challenge 400 site-key-missing', from => call(`${this.#url}/challenge`, { from }))
    await this.#times(3, 'challenge 400 site-key-malformed', challenge('not a site key'))
    await this.#times(4, 'challenge 403 site-unknown', challenge(UNKNOWN_SITE_KEY))
    await this.#times(2, 'challenge 403 site-inactive', challenge(closed.siteKey))
    const elsewhere = challenge(choosy.siteKey, { Origin: 'https://b.example' })
    await this.#times(3, 'challenge 403 origin-refused', elsewhere)
    const post: Send = from => call(`${this.#url}/challenge`, { method: 'POST', body: '{}', from })
    await this.#times(2, 'challenge 405 method-not-allowed', post)
    const preflight: Send = from => call(`${this.#url}/challenge`, { method: 'OPTIONS', from })
    await this.#times(2, 'other 200 ok', preflight)
    const from = freshAddress()
    await this.#times(3, 'challenge 200 ok', challenge(site.siteKey), from)
    await this.#times(4, 'challenge 429 rate-limited', challenge(site.siteKey), from) // its limit at the site
    await this.#times(2, 'challenge 200 ok', challenge(other.siteKey), from)
    await this.#times(3, 'challenge 429 rate-limited', challenge(other.siteKey), from) // its limit at all sites
  }

  async verifications(): Promise<void> {
    const subject = this.#subject
    const { client } = subject
    const { siteKey } = subject.site
    const site = await subject.createSite()
    const verify =
      (body: unknown, headers = {}) =>
      (from: string) =>
        client.verify(siteKey, body, { from, headers })
    await this.#times(2, 'verify 413 body-too-large', verify('x'.repeat(10_000)))
    await this.#times(2, 'verify 400 content-type', verify('{}', { 'Content-Type': 'text/plain' }))
    await this.#times(1, 'verify 400 body-empty', verify(''))
    await this.#times(1, 'verify 400 body-not-utf8', verify(Buffer.from([0x7b, 0xff, 0x7d])))
    await this.#times(2, 'verify 400 body-not-json', verify('{'))
    await this.#times(3, 'verify 400 body-shape', verify('{}'))
    await this.#times(1, 'verify 405 method-not-allowed', from => call(`${this.#url}/verify`, { from }))
    for (const [ageMs, what] of [
      [-60_000, 'verify 400 nonce-from-future'],
      [200_000, 'verify 400 nonce-expired'],
    ] as const) {
      const from = freshAddress()
      await this.#send(what, verify(await subject.agedSolution(siteKey, from, ageMs)), from)
    }
    const forged = { nonce: 'ab'.repeat(16), counter: 1, fingerprintHash: freshFingerprint() }
    await this.#times(2, 'verify 400 nonce-forged', verify(forged))
    const elsewhere = await this.#solved(freshAddress())
    await this.#times(2, 'verify 403 nonce-other-address', verify(elsewhere))
    const from = freshAddress()
    const atOther: Send = from => client.verify(site.siteKey, '{}', { from })
    await this.#times(2, 'verify 400 body-shape', verify('{}'), from)
    await this.#times(3, 'verify 429 rate-limited', verify('{}'), from) // its limit at the site
    await this.#times(1, 'verify 400 body-shape', atOther, from)
    await this.#times(2, 'verify 429 rate-limited', atOther, from) // its limit at all sites
  }

  /** Verifications that are answered with 200: score 1, 0.85, 0.4 and 0, and without a score. */
  async judgements(): Promise<void> {
    const { client, site } = this.#subject
    const blocking = { allow: [], block: ['127.0.0.0/8'] }
    const blocked = await this.#subject.createSite({ plan: 'pro', ipRules: blocking })
    const verify = (body: unknown) => (from: string) => client.verify(site.siteKey, body, { from })
    for (let index = 0; index < 3; index++) await this.#judge('ok', {})
    const common = { noPlugins: true, notificationDenied: true }
    await this.#judge('ok', { environment: { ...HONEST_ENVIRONMENT, ...common } })
    for (let index = 0; index < 2; index++)
      await this.#judge('failed', { environment: { ...HONEST_ENVIRONMENT, webdriver: true } })
    const { webdriver, zeroScreen, noLanguages, ...rest } = HONEST_ENVIRONMENT
    const bot = { webdriver: true, zeroScreen: true, noLanguages: true, ...rest }
    await this.#judge('failed', { environment: bot })
    const from = freshAddress()
    const solution = await this.#solved(from)
    const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
    await this.#send('verify 200 failed', verify(wrong), from)
    await this.#send('verify 200 failed', from => client.verify(blocked.siteKey, solution, { from }))
    const again = freshAddress()
    const spent = await this.#solved(again)
    await this.#send('verify 200 ok', verify(spent), again)
    await this.#send('verify 400 nonce-used', verify(spent), again)
  }

  async #judge(outcome: 'ok' | 'failed', more: object): Promise<Answer> {
    const { client, site } = this.#subject
    const from = freshAddress()
    const solution = { ...(await this.#solved(from)), ...more }
    return this.#send(`verify 200 ${outcome}`, from => client.verify(site.siteKey, solution, { from }), from)
  }

  async #solved(from: string) {
    const solution = await this.#subject.client.solved(this.#subject.site.siteKey, { from })
    this.sent.set('challenge 200 ok', (this.sent.get('challenge 200 ok') ?? 0) + 1)
    return solution
  }

  async credentials(): Promise<void> {
    const { client } = this.#subject
    const [key, revoked] = [await this.#subject.createSite(), await this.#subject.createSite()]
    const inactive = await this.#subject.createSite({ active: false })
    await this.#subject.withSites(store => revokeApiKey(store, apiKeyId(revoked.apiKey)!))
    const ask = (apiKey: string) => (from: string) => client.verifyToken(apiKey, '{}', { from })
    const bare: Send = from => call(`${this.#url}/verify-token`, { method: 'POST', body: '{}', from })
    await this.#times(2, 'verify-token 401 credentials-missing', bare)
    await this.#times(3, 'verify-token 401 credentials-malformed', ask('no key'))
    await this.#times(2, 'verify-token 401 api-key-unknown', ask(`sk_00000000_${'x'.repeat(43)}`))
    const wrong = `${key.apiKey.slice(0, -2)}${key.apiKey.endsWith('AA') ? 'BB' : 'AA'}`
    await this.#times(2, 'verify-token 401 api-key-wrong-secret', ask(wrong))
    await this.#times(2, 'verify-token 401 api-key-revoked', ask(revoked.apiKey))
    await this.#times(1, 'verify-token 401 api-key-site-inactive', ask(inactive.apiKey))
    const get: Send = from => call(`${this.#url}/verify-token`, { from })
    await this.#times(2, 'verify-token 405 method-not-allowed', get)
    const limited = freshAddress()
    await this.#times(5, 'verify-token 400 body-shape', ask(key.apiKey), limited)
    await this.#times(2, 'verify-token 429 rate-limited', ask(key.apiKey), limited) // its address
    await this.#times(3, 'verify-token 400 body-shape', ask(key.apiKey))
    await this.#times(3, 'verify-token 429 rate-limited', ask(key.apiKey)) // its key
  }

  /** The subject's own key is asked eight times: its limit. */
  async redemptions(): Promise<void> {
    const { client, site } = this.#subject
    const other = await this.#subject.createSite()
    const redeem =
      (token: string, more = {}) =>
      (from: string) =>
        client.verifyToken(site.apiKey, { token, ...more }, { from })
    const { token } = (await this.#judge('ok', {})).json
    const claims = claimsOf(token)
    const aged = (ageMs: number) => mintToken(keyring, { ...claims, issuedAtMs: Date.now() - ageMs })
    await this.#send('verify-token 400 token-other-address', redeem(token, { expectedIp: '192.0.2.1' }))
    await this.#send('verify-token 200 ok', redeem(token))
    await this.#send('verify-token 400 token-used', redeem(token))
    await this.#send('verify-token 400 token-malformed', redeem('no token'))
    const forged = `${token.slice(0, -2)}${token.endsWith('AA') ? 'BB' : 'AA'}`
    await this.#send('verify-token 400 token-forged', redeem(forged))
    await this.#send('verify-token 400 token-from-future', redeem(aged(-60_000)))
    await this.#send('verify-token 400 token-expired', redeem(aged(400_000)))
    const forgotten = mintToken(keyring, { ...claims, storeEpoch: (claims.storeEpoch + 1) % 2 ** 32 })
    await this.#send('verify-token 400 token-forgotten', redeem(forgotten))
    const atOther: Send = from => client.verifyToken(other.apiKey, { token }, { from })
    await this.#send('verify-token 400 token-other-site', atOther)
  }

  async others(): Promise<void> {
    for (const path of ['/', '/challenge/', '/metrics', '/healthz', '/..%2f'])
      await this.#send('other 404 not-found', from => call(`${this.#url}${path}`, { from }))
    await this.#times(3, 'content 200 ok', from => call(`${this.#url}/widget.js`, { from }))
    const post: Send = from => call(`${this.#url}/widget.js`, { method: 'POST', body: '{}', from })
    await this.#times(2, 'content 405 method-not-allowed', post)
  }
}
