/** The contract (docs/reference/contract.md), §2.2, §2.4 and §4.2 rule 2: the score, the site's threshold, and IP rules. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SCORE_WEIGHTS } from '../../src/domain/score.ts'
import type { SiteOptions } from '../../src/sites/sites.ts'
import { FLAGS, HONEST_ENVIRONMENT } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { type Answer, freshAddress } from '../harness/http.ts'
import { EASY } from '../harness/service.ts'
import {
  assertFailedResult,
  assertNotRedeemed,
  assertNotSiteverified,
  assertPassed,
  assertRedeemed,
  assertRefused,
} from './answers.ts'
import { type Subject, untilAll, wrongCounter } from './support.ts'

type Rules = Partial<Record<'allow' | 'block', string[]>>

type RulesCase = { about: string; rules: (from: string) => Rules; passes: boolean; plan?: 'free' }
const RULES_CASES: readonly RulesCase[] = [
  { about: 'blocked', rules: from => ({ block: [from] }), passes: false },
  { about: 'in a blocked CIDR', rules: from => ({ block: [`${from}/20`] }), passes: false },
  { about: 'another is blocked', rules: () => ({ block: ['192.0.2.1'] }), passes: true },
  { about: 'not on the allow list', rules: () => ({ allow: ['192.0.2.1'] }), passes: false },
  { about: 'on the allow list', rules: from => ({ allow: ['192.0.2.1', from] }), passes: true },
  { about: 'in an allowed CIDR', rules: from => ({ allow: [`${from}/20`] }), passes: true },
  { about: 'on both lists', rules: from => ({ allow: [from], block: [from] }), passes: false },
  { about: 'no rules', rules: () => ({}), passes: true },
  { about: 'blocked, but on plan free', rules: from => ({ block: [from] }), passes: true, plan: 'free' },
  { about: 'not allowed, on plan free', rules: () => ({ allow: ['192.0.2.1'] }), passes: true, plan: 'free' },
]

export function scoreTests(subject: Subject): void {
  /** The score of an otherwise honest visitor on a site that lets everybody pass. */
  async function scoreWith(flags: object): Promise<number> {
    const visitor = await subject.visitorOf({ threshold: 0 })
    return visitor.score({ environment: { ...HONEST_ENVIRONMENT, ...flags } })
  }

  test('§2.4 score: an honest visitor gets 1.0', async () => {
    assert.equal(await scoreWith({}), 1)
    assert.equal(await (await subject.visitorOf()).score({ environment: {} }), 1)
  })

  /** domain/rules.test.ts has the weight of each flag, and of a time that is impossible. */
  test('§2.2 environment: flags add up, also two that prove nothing alone; the score ends at 0.0', async () => {
    const two = await scoreWith({ chromeAbsent: true, noPlugins: true })
    assert.equal(two, rounded(1 - SCORE_WEIGHTS.chromeAbsent - SCORE_WEIGHTS.noPlugins))
    assert.equal(await scoreWith(Object.fromEntries(FLAGS.map(flag => [flag, true]))), 0)
  })

  test('§2.4, decided: a site has one bound at redemption; the token is spent', async () => {
    const site = await subject.createSite({ threshold: 0, minScore: 0.5 })
    const tokenOf = (environment: typeof HONEST_ENVIRONMENT) => subject.visitor(site).token({ environment })
    const redeem = (token: string) => subject.redeem({ token }, site.apiKey)
    const bot = { ...HONEST_ENVIRONMENT, webdriver: true }
    const [low, enough] = [await tokenOf(bot), await tokenOf(HONEST_ENVIRONMENT)]
    assertNotRedeemed(await redeem(low), 400, 'score-too-low')
    assertNotRedeemed(await redeem(low), 400, 'token-used')
    assertRedeemed(await redeem(enough))
    const fields = { secret: site.apiKey, response: await tokenOf(bot) }
    assertNotSiteverified(await subject.client.siteverify(fields), 'score-too-low')
    await subject.changeSite(site.siteKey, { minScore: 0.4 })
    const isRedeemed = async () => (await redeem(await tokenOf(bot))).status === 200
    await eventually(60_000, 'the bound is lower', isRedeemed)
  })

  const { environmentMissing, noLanguages } = SCORE_WEIGHTS
  for (const { signals, withoutAny, withOneFlag } of [
    { signals: 'none', withoutAny: 1, withOneFlag: 1 },
    { signals: 'flags', withoutAny: rounded(1 - environmentMissing), withOneFlag: rounded(1 - noLanguages) },
  ] as const)
    test(`§2.2 environment, decided: at a site with signals ${signals}, no environment scores ${withoutAny}, and one flag ${withOneFlag}`, async () => {
      const visitor = await subject.visitorOf({ threshold: 0, signals })
      const asked = await visitor.challenge()
      assert.equal(asked.headers['x-powgate-signals'], signals)
      const { environment: _, ...bare } = await visitor.solved()
      const { token } = (await visitor.verify(bare)).json
      assert.equal((await visitor.redeem({ token })).json.score, withoutAny)
      const flagged = { ...HONEST_ENVIRONMENT, noLanguages: true }
      assert.equal(await visitor.score({ environment: flagged }), withOneFlag)
    })

  test('§2.4 score, decided: failed verifications of the address lower it, at their site only; no challenge gets harder', async () => {
    const visitor = await subject.visitorOf()
    const solution = await visitor.solved()
    const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
    for (let count = 0; count < 3; count++) assertFailedResult(await visitor.verify(wrong))
    const { json } = await visitor.verify(solution)
    const redemption = await visitor.redeem({ token: json.token })
    assert.equal(redemption.json.score, rounded(1 - 3 * SCORE_WEIGHTS.recentFailure))
    assert.equal((await visitor.challenge()).json.difficulty, EASY.base)
    const elsewhere = visitor.at(await subject.createSite())
    assert.equal((await elsewhere.challenge()).json.difficulty, EASY.base)
    assert.equal(await elsewhere.score(), 1)
  })

  test('§2.3, §2.4, decided: a score that is too low by the weights of its site counts as a failure of the address; a refusal by IP rules does not', async () => {
    const [low, blocked] = [freshAddress(), freshAddress()]
    const ipRules = { allow: [], block: [blocked] }
    // Each of the two alone takes a score of 1 below the threshold.
    const scoreWeights = { noLanguages: 0.5, recentFailure: 0.5 }
    const site = await subject.createSite({ plan: 'pro', threshold: 0.6, ipRules, scoreWeights })
    const attempt = async (from: string, noLanguages: boolean) => {
      const visitor = subject.visitor(site, from)
      return visitor.verify(await visitor.solved({ environment: { noLanguages } }))
    }
    for (const from of [low, blocked]) assertFailedResult(await attempt(from, true))
    assertFailedResult(await attempt(low, false)) // by the failure before
    const difficulty = { base: 17, min: 16, max: 28 } // shows which workers know that nobody is blocked any more
    await subject.changeSite(site.siteKey, { ipRules: { allow: [], block: [] }, difficulty })
    const isSeen = ({ json }: Answer) => json.difficulty === 17
    await untilAll('the change, in all workers', isSeen, () => subject.visitor(site).challenge())
    assertPassed(await attempt(blocked, false))
  })

  test('§2.3 passed: webdriver fails at the default threshold, and the solved nonce is spent', async () => {
    const visitor = subject.visitor()
    const solution = await visitor.solved()
    const environment = { ...HONEST_ENVIRONMENT, webdriver: true }
    assertFailedResult(await visitor.verify({ ...solution, environment }))
    assertRefused(await visitor.verify(solution), 400, 'nonce-used')
  })

  test('§2.3 passed: whether the score reaches the threshold of the site', async () => {
    const environment = { ...HONEST_ENVIRONMENT, noLanguages: true } // scores 0.7
    for (const threshold of [0.69, 0.7, 0.71, 1]) {
      const visitor = await subject.visitorOf({ threshold })
      const answer = await visitor.verify(await visitor.solved({ environment }))
      if (threshold <= 0.7) assertPassed(answer)
      else assertFailedResult(answer)
    }
  })

  for (const { about, rules, passes, plan = 'pro' } of RULES_CASES) {
    test(`§4.2 rule 2: IP rules on plan ${plan}, the address is ${about}: ${passes ? 'passes' : 'fails'}`, async () => {
      const from = freshAddress()
      const visitor = subject.visitor(await subject.createSite(withRules(rules(from), plan)), from)
      const answer = await visitor.verify(await visitor.solved())
      if (passes) assertPassed(answer)
      else assertFailedResult(answer)
    })
  }

  async function blockedVisitor(more: SiteOptions = {}) {
    const from = freshAddress()
    return subject.visitor(await subject.createSite({ ...withRules({ block: [from] }), ...more }), from)
  }

  test('§4.2 rule 2: a blocked IP fails at once, whatever its solution is, and spends nothing', async () => {
    const visitor = await blockedVisitor()
    const solution = await visitor.solved()
    const aged = await visitor.agedSolution(3_600_000)
    for (const more of [{}, { counter: wrongCounter(solution.nonce) }, { nonce: '0'.repeat(32) }, aged])
      assertFailedResult(await visitor.verify({ ...solution, ...more }))
    await subject.changeSite(visitor.site.siteKey, { ipRules: { allow: [], block: [] } })
    let pauseMs = 300
    await eventually(60_000, 'the rules are gone', async () => {
      // The pauses grow, because the visitor may ask 20 times a minute.
      await new Promise(resolve => setTimeout(resolve, (pauseMs *= 1.4)))
      const answer = await visitor.verify(solution)
      if (answer.json.passed !== true) assertFailedResult(answer)
      return answer.json.passed
    })
  })

  test('§4.2 rule 2, decided: the rules come after origin and body', async () => {
    const visitor = await blockedVisitor({ origins: ['https://shop.example'] })
    const foreign = await visitor.verify(await visitor.solved(), { Origin: 'https://other.example' })
    assertRefused(foreign, 403, 'origin-not-allowed')
    assertRefused(await visitor.verify('{}'), 400, 'invalid-body')
  })
}

const withRules = (rules: Rules, plan: 'free' | 'pro' = 'pro'): SiteOptions => ({
  plan,
  ipRules: { allow: [], block: [], ...rules },
})

const rounded = (score: number): number => Math.round(score * 100) / 100
