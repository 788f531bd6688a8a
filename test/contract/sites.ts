/** The contract (docs/reference/contract.md), §5 and §7: the sites and origins for which /challenge and /verify answer. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertPassed, assertRefused } from './answers.ts'
import type { Ask } from './limits.ts'
import { type Subject, UNKNOWN_SITE_KEY } from './support.ts'

/** One good request to each endpoint, as far as site and origin allow it. */
const ENDPOINTS: Readonly<Record<string, Ask>> = {
  '/challenge': (visitor, headers) => visitor.challenge(headers),
  '/verify': async (visitor, headers) => visitor.verify(await visitor.agedSolution(1000), headers),
}

const SHOP = { origins: ['https://shop.example'] }
const STRICT = { ...SHOP, requireOrigin: true }
const WILDCARD = { origins: ['https://*.shop.example'] }

/** domain/rules.test.ts has all ways in which an origin can differ from the listed one. */
const ORIGIN_CASES = [
  { about: 'the listed origin', site: SHOP, origin: 'https://shop.example', isAllowed: true },
  { about: 'another host', site: SHOP, origin: 'https://other.example', isAllowed: false },
  { about: 'null', site: SHOP, origin: 'null', isAllowed: false },
  { about: 'a subdomain of a pattern', site: WILDCARD, origin: 'https://a.shop.example', isAllowed: true },
  { about: 'no Origin header', site: SHOP, origin: undefined, isAllowed: true },
  { about: 'no Origin header, but requireOrigin', site: STRICT, origin: undefined, isAllowed: false },
  { about: 'the listed one, requireOrigin', site: STRICT, origin: 'https://shop.example', isAllowed: true },
  { about: 'any origin where none is listed', site: {}, origin: 'https://any.example', isAllowed: true },
]

export function siteTests(subject: Subject): void {
  for (const [path, ask] of Object.entries(ENDPOINTS)) {
    test(`§5 rule 2: only the key of an active site is served on ${path}; any other gives 403`, async () => {
      const { site } = subject
      assert.equal((await ask(subject.visitor())).status, 200)
      for (const siteKey of [UNKNOWN_SITE_KEY, oneCaseSwapped(site.siteKey)])
        assertRefused(await ask(subject.visitor({ ...site, siteKey })), 403, 'site-unknown')
      assertRefused(await ask(await subject.visitorOf({ active: false })), 403, 'site-inactive')
    })

    for (const { about, site, origin, isAllowed } of ORIGIN_CASES) {
      test(`§5 rule 2: ${path} ${isAllowed ? 'serves' : 'refuses with 403'}: ${about}`, async () => {
        const visitor = await subject.visitorOf(site)
        const answer = await ask(visitor, origin === undefined ? {} : { Origin: origin })
        if (isAllowed) return assert.equal(answer.status, 200, answer.text)
        assertRefused(answer, 403, 'origin-not-allowed')
        assert.ok(answer.json.error.includes(origin ?? 'no Origin header'), answer.json.error)
      })
    }
  }

  test('§5 rule 2: a page of the own origin, of which browsers send none with a GET, needs none', async () => {
    const { site } = await subject.visitorOf(STRICT)
    const challengeOf = (headers: Record<string, string>) => subject.visitor(site).challenge(headers)
    assert.equal((await challengeOf({ 'Sec-Fetch-Site': 'same-origin' })).status, 200)
    for (const headers of [
      ...['same-site', 'cross-site', 'none', ''].map(text => ({ 'Sec-Fetch-Site': text })),
      { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://other.example' },
    ])
      assertRefused(await challengeOf(headers), 403, 'origin-not-allowed')
  })

  test('§5 rule 2: a refused origin spends nothing: the same solution passes from the allowed one', async () => {
    const visitor = await subject.visitorOf(SHOP)
    const solution = await visitor.agedSolution(1000)
    const foreign = await visitor.verify(solution, { Origin: 'https://other.example' })
    assertRefused(foreign, 403, 'origin-not-allowed')
    assertPassed(await visitor.verify(solution, { Origin: 'https://shop.example' }))
  })
}

/** The key with the first letter behind `site_` in the other case. */
function oneCaseSwapped(siteKey: string): string {
  const index = 5 + siteKey.slice(5).search(/[a-zA-Z]/)
  const swapped = String.fromCharCode(siteKey.charCodeAt(index) ^ 0x20)
  return siteKey.slice(0, index) + swapped + siteKey.slice(index + 1)
}
