/** Contract, sections 5 and 7: which sites and origins /challenge and /verify serve. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SiteOptions } from '../../src/sites/sites.ts'
import { updateSite } from '../../src/sites/sites.ts'
import { eventually } from '../harness/eventually.ts'
import { type Answer, freshAddress } from '../harness/http.ts'
import { assertRefused, type Subject, UNKNOWN_SITE_KEY } from './support.ts'

type Ask = (
  subject: Subject,
  siteKey: string,
  headers?: Record<string, string>,
  from?: string,
) => Promise<Answer>

/** One good request to each endpoint, as far as site and origin allow it. */
const ENDPOINTS: readonly { path: string; ask: Ask }[] = [
  {
    path: '/challenge',
    ask: (subject, siteKey, headers = {}, from = freshAddress()) =>
      subject.client.challenge(siteKey, { from, headers }),
  },
  {
    path: '/verify',
    ask: async (subject, siteKey, headers = {}, from = freshAddress()) => {
      const solution = await subject.agedSolution(siteKey, from, 1000)
      return subject.client.verify(siteKey, solution, { from, headers })
    },
  },
]

interface OriginCase {
  readonly about: string
  readonly site: SiteOptions
  readonly origin: string | undefined
  readonly isAllowed: boolean
}

const SHOP = { origins: ['https://shop.example'] }
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
  {
    about: 'no Origin header, but requireOrigin',
    site: { ...SHOP, requireOrigin: true },
    origin: undefined,
    isAllowed: false,
  },
  {
    about: 'the listed origin with requireOrigin',
    site: { ...SHOP, requireOrigin: true },
    origin: 'https://shop.example',
    isAllowed: true,
  },
  { about: 'any origin where none is listed', site: {}, origin: 'https://any.example', isAllowed: true },
]

export function siteTests(subject: Subject): void {
  for (const { path, ask } of ENDPOINTS) {
    test(`§5 rule 2: a valid key of an active site is served on ${path}`, async () => {
      assert.equal((await ask(subject, subject.site.siteKey)).status, 200)
    })

    test(`§5 rule 2: an invalid site key gives 403 on ${path}`, async () => {
      assertRefused(await ask(subject, UNKNOWN_SITE_KEY), 403, 'site-unknown')
    })

    test(`§5 rule 2: a site key that differs in the case of one letter gives 403 on ${path}`, async () => {
      const { siteKey } = subject.site
      const index = 5 + siteKey.slice(5).search(/[a-zA-Z]/)
      const letter = siteKey[index]!
      const swapped = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
      const other = siteKey.slice(0, index) + swapped + siteKey.slice(index + 1)
      assertRefused(await ask(subject, other), 403, 'site-unknown')
    })

    test(`§5 rule 2: an inactive site gives 403 on ${path}`, async () => {
      const { siteKey } = await subject.createSite({ active: false })
      assertRefused(await ask(subject, siteKey), 403, 'site-inactive')
    })

    for (const { about, site, origin, isAllowed } of ORIGIN_CASES) {
      test(`§5 rule 2: ${path} ${isAllowed ? 'serves' : 'refuses with 403'}: ${about}`, async () => {
        const { siteKey } = await subject.createSite(site)
        const answer = await ask(subject, siteKey, origin === undefined ? {} : { Origin: origin })
        if (isAllowed) assert.equal(answer.status, 200, answer.text)
        else assertRefused(answer, 403, 'origin-not-allowed')
      })
    }
  }

  test('§5 rule 2: a page of the own origin, of which browsers send none with a GET, needs none', async () => {
    const { siteKey } = await subject.createSite({ ...SHOP, requireOrigin: true })
    const challengeOf = (site: string) =>
      subject.client.challenge(siteKey, { from: freshAddress(), headers: { 'Sec-Fetch-Site': site } })
    assert.equal((await challengeOf('same-origin')).status, 200)
    for (const site of ['same-site', 'cross-site', 'none', ''])
      assertRefused(await challengeOf(site), 403, 'origin-not-allowed')
    const headers = { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://other.example' }
    const other = await subject.client.challenge(siteKey, { from: freshAddress(), headers })
    assertRefused(other, 403, 'origin-not-allowed')
  })

  test('§5 rule 2: a refused origin spends nothing: the same solution passes from the allowed one', async () => {
    const { siteKey } = await subject.createSite(SHOP)
    const from = freshAddress()
    const solution = await subject.agedSolution(siteKey, from, 1000)
    const submit = (origin: string) =>
      subject.client.verify(siteKey, solution, { from, headers: { Origin: origin } })
    assertRefused(await submit('https://other.example'), 403, 'origin-not-allowed')
    assert.equal((await submit('https://shop.example')).json.passed, true)
  })

  test('§5 rule 2: a site that is switched off while in use gives 403 in every worker', async () => {
    const { siteKey } = await subject.createSite()
    const [challenge] = ENDPOINTS
    const askTen = () => Promise.all(Array.from({ length: 10 }, () => challenge!.ask(subject, siteKey)))
    for (const answer of await askTen()) assert.equal(answer.status, 200)
    const store = await subject.service.openSites()
    try {
      await updateSite(store, siteKey, { active: false })
    } finally {
      await store.close()
    }
    await eventually(10_000, 'ten new connections get 403', async () =>
      (await askTen()).every(answer => answer.status === 403),
    )
  })
}
