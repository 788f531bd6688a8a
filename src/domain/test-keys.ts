/**
 * Published keys for testing an integration, each with a fixed outcome. No store has them: with POWGATE_TEST_KEYS=on workers
 * accept them too (store/site-directory.ts).
 */

import { DIFFICULTY_MIN } from '../protocol/proof.ts'
import { SCORE_REASONS } from './score.ts'
import {
  type ApiKeyRecord,
  apiKeyRecord,
  compileSite,
  SITE_DEFAULTS,
  type Site,
  type TestOutcome,
} from './site.ts'

interface TestKeys {
  readonly siteKey: string
  readonly apiKey: string
}

export const TEST_KEYS: Readonly<Record<TestOutcome, TestKeys>> = {
  passes: {
    siteKey: 'site_TestAlwaysPasses000000',
    apiKey: 'sk_TestPass_published-and-always-passes-000000000000000',
  },
  fails: {
    siteKey: 'site_TestAlwaysFails0000000',
    apiKey: 'sk_TestFail_published-and-always-fails-0000000000000000',
  },
  used: {
    siteKey: 'site_TestAlwaysUsed00000000',
    apiKey: 'sk_TestUsed_published-and-always-already-used-000000000',
  },
}

/** Allows every origin, ignores all signals, and has the lowest difficulty, so tests need not wait. */
export function testSite(outcome: TestOutcome): Site {
  const site = compileSite({
    ...SITE_DEFAULTS,
    siteKey: TEST_KEYS[outcome].siteKey,
    name: `test: always ${outcome}`,
    threshold: 0,
    scoreWeights: Object.fromEntries(SCORE_REASONS.map(signal => [signal, 0])),
    difficulty: { base: DIFFICULTY_MIN, min: DIFFICULTY_MIN, max: DIFFICULTY_MIN },
    createdAt: 0,
    updatedAt: 0,
  })
  return { ...site, test: outcome }
}

export function testApiKey(outcome: TestOutcome): ApiKeyRecord {
  const { siteKey, apiKey } = TEST_KEYS[outcome]
  return apiKeyRecord(apiKey, { siteKey, createdAt: 0 })
}
