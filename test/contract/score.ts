/** Contract, sections 2.2, 2.4 and 4.2 rule 2: the score, the site's threshold, and IP rules. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SCORE_WEIGHTS } from '../../src/domain/score.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { type SiteOptions, updateSite } from '../../src/sites/sites.ts'
import { FLAGS, HONEST_ENVIRONMENT } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import {
  assertFailedResult,
  assertPassed,
  assertRedeemed,
  assertRefused,
  freshFingerprint,
  QUICK_DIFFICULTY,
  type Subject,
  wrongCounter,
} from './support.ts'

interface RulesCase {
  readonly about: string
  readonly plan: 'free' | 'pro'
  readonly rules: (from: string) => Partial<Record<'allow' | 'block', string[]>>
  readonly passes: boolean
}

const RULES_CASES: readonly RulesCase[] = [
  { about: 'blocked', plan: 'pro', rules: from => ({ block: [from] }), passes: false },
  { about: 'in a blocked CIDR', plan: 'pro', rules: from => ({ block: [`${from}/20`] }), passes: false },
  {
    about: 'blocked in IPv6 form',
    plan: 'pro',
    rules: from => ({ block: [`::ffff:${from}`] }),
    passes: false,
  },
  { about: 'another is blocked', plan: 'pro', rules: () => ({ block: ['192.0.2.1'] }), passes: true },
  { about: 'not on the allow list', plan: 'pro', rules: () => ({ allow: ['192.0.2.1'] }), passes: false },
  { about: 'on the allow list', plan: 'pro', rules: from => ({ allow: ['192.0.2.1', from] }), passes: true },
  { about: 'in an allowed CIDR', plan: 'pro', rules: from => ({ allow: [`${from}/20`] }), passes: true },
  { about: 'on both lists', plan: 'pro', rules: from => ({ allow: [from], block: [from] }), passes: false },
  { about: 'no rules', plan: 'pro', rules: () => ({}), passes: true },
  { about: 'blocked, but on plan free', plan: 'free', rules: from => ({ block: [from] }), passes: true },
  { about: 'not allowed, on plan free', plan: 'free', rules: () => ({ allow: ['192.0.2.1'] }), passes: true },
]

export function scoreTests(subject: Subject): void {
  test('§2.4 score: an honest visitor gets 1.0', async () => {
    assert.equal(await scoreWith({ environment: HONEST_ENVIRONMENT }), 1)
    assert.equal(await scoreWith({ environment: {} }), 1)
  })

  for (const flag of FLAGS) {
    test(`§2.2 environment.${flag} lowers the score by its weight, beside another one`, async () => {
      const other = flag === 'zeroScreen' ? 'noLanguages' : 'zeroScreen'
      const score = await scoreWith({ environment: { ...HONEST_ENVIRONMENT, [flag]: true, [other]: true } })
      assert.equal(score, rounded(1 - SCORE_WEIGHTS[flag] - SCORE_WEIGHTS[other]))
    })
  }

  test('§2.2 environment: flags add up, and the score ends at 0.0', async () => {
    const two = { ...HONEST_ENVIRONMENT, chromeAbsent: true, noPlugins: true }
    assert.equal(
      await scoreWith({ environment: two }),
      rounded(1 - SCORE_WEIGHTS.chromeAbsent - SCORE_WEIGHTS.noPlugins),
    )
    const all = Object.fromEntries(FLAGS.map(flag => [flag, true]))
    assert.equal(await scoreWith({ environment: all }), 0)
  })

  test('§2.2 environment, decided: none at all lowers the score', async () => {
    const { siteKey, apiKey } = await subject.createSite({ threshold: 0 })
    const from = freshAddress()
    const { nonce, counter } = await subject.client.solved(siteKey, { from })
    const body = { nonce, counter, fingerprintHash: freshFingerprint() }
    const { json } = await subject.client.verify(siteKey, body, { from })
    const redemption = await subject.client.verifyToken(apiKey, { token: json.token }, { from })
    assert.equal(redemption.json.score, rounded(1 - SCORE_WEIGHTS.environmentMissing))
  })

  test('§2.2 solveTimeMs, decided: it may lower the score, never raise it', async () => {
    assert.equal(await scoreWith({ solveTimeMs: 0 }), 1)
    assert.equal(await scoreWith({ solveTimeMs: 3_600_000 }), rounded(1 - SCORE_WEIGHTS.solveTimeImpossible))
    const environment = { ...HONEST_ENVIRONMENT, noLanguages: true }
    assert.equal(await scoreWith({ environment, solveTimeMs: 1 }), rounded(1 - SCORE_WEIGHTS.noLanguages))
  })

  test('§2.4 score, decided: failed verifications of the address lower it', async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
    for (let count = 0; count < 3; count++) {
      assertFailedResult(await subject.client.verify(siteKey, wrong, { from }))
    }
    const { json } = await subject.client.verify(siteKey, solution, { from })
    const redemption = await subject.client.verifyToken(apiKey, { token: json.token }, { from })
    assert.equal(redemption.json.score, rounded(1 - 3 * SCORE_WEIGHTS.recentFailure))
  })

  test('§2.4 score, decided: failed verifications count at their site only', async () => {
    const [first, second] = [await subject.createSite(), await subject.createSite()]
    const from = freshAddress()
    const solution = await subject.client.solved(first.siteKey, { from })
    const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
    for (let count = 0; count < 6; count++)
      assertFailedResult(await subject.client.verify(first.siteKey, wrong, { from }))
    const challenge = await subject.client.challenge(second.siteKey, { from })
    assert.equal(challenge.json.difficulty, QUICK_DIFFICULTY.base)
    const { json } = await subject.client.verify(
      second.siteKey,
      await subject.client.solved(second.siteKey, { from }),
      { from },
    )
    const redemption = await subject.client.verifyToken(second.apiKey, { token: json.token }, { from })
    assert.equal(redemption.json.score, 1)
  })

  test('§2.3 passed: webdriver fails at the default threshold, and the solved nonce is spent', async () => {
    const from = freshAddress()
    const environment = { ...HONEST_ENVIRONMENT, webdriver: true }
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    const bot = { ...solution, environment }
    assertFailedResult(await subject.client.verify(subject.site.siteKey, bot, { from }))
    assertRefused(await subject.client.verify(subject.site.siteKey, solution, { from }), 400, 'nonce-used')
  })

  test('§2.3 passed: whether the score reaches the threshold of the site', async () => {
    const environment = { ...HONEST_ENVIRONMENT, noLanguages: true }
    const cases: readonly [threshold: number, passes: boolean][] = [
      [0.69, true],
      [0.7, true],
      [0.71, false],
      [1, false],
    ]
    for (const [threshold, passes] of cases) {
      const { siteKey } = await subject.createSite({ threshold })
      const from = freshAddress()
      const solution = await subject.client.solved(siteKey, { from }, { environment })
      const answer = await subject.client.verify(siteKey, solution, { from })
      if (passes) assertPassed(answer)
      else assertFailedResult(answer)
    }
  })

  for (const { about, plan, rules, passes } of RULES_CASES) {
    test(`§4.2 rule 2: IP rules on plan ${plan}, the address is ${about}: ${passes ? 'passes' : 'fails'}`, async () => {
      const from = freshAddress()
      const { siteKey } = await subject.createSite(withRules(rules(from), plan))
      const solution = await subject.client.solved(siteKey, { from })
      const answer = await subject.client.verify(siteKey, solution, { from })
      if (passes) assertPassed(answer)
      else assertFailedResult(answer)
    })
  }

  test('§4.2 rule 2: a blocked IP fails at once, whatever its solution is, and spends nothing', async () => {
    const from = freshAddress()
    const { siteKey } = await subject.createSite(withRules({ block: [from] }))
    const solution = await subject.client.solved(siteKey, { from })
    const submit = (body: unknown) => subject.client.verify(siteKey, body, { from })
    assertFailedResult(await submit(solution))
    assertFailedResult(await submit({ ...solution, counter: wrongCounter(solution.nonce) }))
    assertFailedResult(await submit({ ...solution, nonce: '0'.repeat(32) }))
    assertFailedResult(await submit(await subject.agedSolution(siteKey, from, 3_600_000)))
    await removeRules(siteKey)
    for (let attempt = 1; ; attempt++) {
      const answer = await submit(solution)
      if (answer.json.passed === true) break
      assertFailedResult(answer)
      assert.ok(attempt < 15, 'the rules were removed, but the address still fails')
      await new Promise(resolve => setTimeout(resolve, 400))
    }
  })

  test('§4.2 rule 2, decided: who is on a list of one site has failed at no other', async () => {
    const from = freshAddress()
    const { siteKey } = await subject.createSite(withRules({ block: [from] }))
    const other = await subject.createSite()
    const solution = await subject.client.solved(siteKey, { from })
    for (let count = 0; count < 3; count++)
      assertFailedResult(await subject.client.verify(siteKey, solution, { from }))
    const token = await subject.client.token(other.siteKey, { from })
    const redemption = await subject.client.verifyToken(other.apiKey, { token }, { from })
    assert.equal(redemption.json.score, 1)
  })

  test('§4.2 rule 2, decided: the rules come after origin and body', async () => {
    const from = freshAddress()
    const origins = ['https://shop.example']
    const { siteKey } = await subject.createSite({ ...withRules({ block: [from] }), origins })
    const solution = await subject.client.solved(siteKey, { from })
    const headers = { Origin: 'https://other.example' }
    assertRefused(
      await subject.client.verify(siteKey, solution, { from, headers }),
      403,
      'origin-not-allowed',
    )
    assertRefused(await subject.client.verify(siteKey, '{}', { from }), 400, 'invalid-body')
  })

  /** The score of an otherwise honest visitor on a site that lets everybody pass. */
  async function scoreWith(more: Partial<Solution>): Promise<number> {
    const { siteKey, apiKey } = await subject.createSite({ threshold: 0 })
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from }, more)
    const answer = await subject.client.verify(siteKey, solution, { from })
    assertPassed(answer)
    const redemption = await subject.client.verifyToken(apiKey, { token: answer.json.token }, { from })
    assertRedeemed(redemption)
    return redemption.json.score
  }

  async function removeRules(siteKey: string): Promise<void> {
    const store = await subject.service.openSites()
    try {
      await updateSite(store, siteKey, { ipRules: { allow: [], block: [] } })
    } finally {
      await store.close()
    }
  }
}

function withRules(rules: { allow?: string[]; block?: string[] }, plan: 'free' | 'pro' = 'pro'): SiteOptions {
  return { plan, ipRules: { allow: [], block: [], ...rules } }
}

function rounded(score: number): number {
  return Math.round(score * 100) / 100
}
