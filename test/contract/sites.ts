/** Contract §5 and §7: the sites and origins for which /challenge and /verify answer. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SiteOptions } from '../../src/sites/sites.ts'
import type { Answer } from '../harness/http.ts'
import { assertPassed, assertRefused } from './answers.ts'
import { type Subject, UNKNOWN_SITE_KEY, type Visitor } from './support.ts'

type Ask = (visitor: Visitor, headers?: Record<string, string>) => Promise<Answer>

/** One good request to each endpoint, as far as site and origin allow it. */
const ENDPOINTS: readonly { path: string; ask: Ask }[] = [
  { path: '/challenge', ask: (visitor, headers) => visitor.challenge(headers) },
  {
    path: '/verify',
    ask: async (visitor, headers) => visitor.verify(await visitor.agedSolution(1000), headers),
  },
]

interface OriginCase {
  readonly about: string
  readonly site: SiteOptions
  readonly origin: string | undefined
  readonly isAllowed: boolean
}

const SHOP = { origins: ['https://shop.example'] }
const STRICT = { ...SHOP, requireOrigin: true }
const LISTED = { origins: ['https://shop.example', 'http://localhost:3000'] }
const WILDCARD = { origins: ['https://*.shop.example'] }

const ORIGIN_CASES: readonly OriginCase[] = [
  { about: 'the listed origin', site: SHOP, origin: 'https://shop.example', isAllowed: true },
  { about: 'one of several', site: LISTED, origin: 'http://localhost:3000', isAllowed: true },
  { about: 'another host', site: SHOP, origin: 'https://other.example', isAllowed: false },
  { about: 'another scheme', site: SHOP, origin: 'http://shop.example', isAllowed: false },
  { about: 'another port', site: SHOP, origin: 'https://shop.example:8443', isAllowed: false },
  { about: 'no port where one is listed', site: LISTED, origin: 'http://localhost', isAllowed: false },
  { about: 'a subdomain of an exact entry', site: SHOP, origin: 'https://a.shop.example', isAllowed: false },
  { about: 'a listed origin as a prefix', site: SHOP, origin: 'https://shop.example.evil', isAllowed: false },
  { about: 'null', site: SHOP, origin: 'null', isAllowed: false },
  { about: 'a subdomain of a pattern', site: WILDCARD, origin: 'https://a.shop.example', isAllowed: true },
  { about: 'two labels below it', site: WILDCARD, origin: 'https://a.b.shop.example', isAllowed: true },
  { about: "the pattern's own domain", site: WILDCARD, origin: 'https://shop.example', isAllowed: false },
  { about: 'its name as a suffix', site: WILDCARD, origin: 'https://evilshop.example', isAllowed: false },
  { about: "the pattern's other scheme", site: WILDCARD, origin: 'http://a.shop.example', isAllowed: false },
  { about: 'no Origin header', site: SHOP, origin: undefined, isAllowed: true },
  { about: 'no Origin header, but requireOrigin', site: STRICT, origin: undefined, isAllowed: false },
  { about: 'the listed one, requireOrigin', site: STRICT, origin: 'https://shop.example', isAllowed: true },
  { about: 'any origin where none is listed', site: {}, origin: 'https://any.example', isAllowed: true },
]

export function siteTests(subject: Subject): void {
  for (const { path, ask } of ENDPOINTS) {
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

function oneCaseSwapped(siteKey: string): string {
  const index = 5 + siteKey.slice(5).search(/[a-zA-Z]/)
  const letter = siteKey[index]!
  const swapped = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
  return siteKey.slice(0, index) + swapped + siteKey.slice(index + 1)
}
