/** The whole contract (docs/reference/contract.md), §1 to §8, but for what takes a minute (limits.ts) or an outage (outage.test.ts). */

import { hostileBodyTests, solutionFieldTests } from './bodies.ts'
import { challengeTests } from './challenge.ts'
import { backendLimitTests, limitTests } from './limits.ts'
import { corsTests, methodTests } from './methods.ts'
import { puzzleTests } from './puzzles.ts'
import { scoreTests } from './score.ts'
import { siteTests } from './sites.ts'
import { siteverifyTests } from './siteverify.ts'
import type { Sections } from './support.ts'
import { tokenTests } from './token.ts'
import { verifyTests } from './verify.ts'
import { credentialTests, verifyTokenTests } from './verify-token.ts'

export const CONTRACT = {
  'GET /challenge': challengeTests,
  'sites and origins': siteTests,
  'POST /verify': verifyTests,
  puzzles: puzzleTests,
  'fields of a solution': solutionFieldTests,
  'score and IP rules': scoreTests,
  tokens: tokenTests,
  'POST /verify-token': verifyTokenTests,
  credentials: credentialTests,
  'wrong bodies': hostileBodyTests,
  'paths and methods': methodTests,
  CORS: corsTests,
  'limits for browsers': limitTests,
  'limits for backends': backendLimitTests,
  'POST /siteverify': siteverifyTests,
} satisfies Sections

export type SectionName = keyof typeof CONTRACT

export const only = (...names: readonly SectionName[]): Sections =>
  Object.fromEntries(names.map(name => [name, CONTRACT[name]]))

export const without = (...names: readonly SectionName[]): Sections =>
  only(...(Object.keys(CONTRACT) as SectionName[]).filter(name => !names.includes(name)))

/** Sections whose answers depend on the visitor's address. */
export const BY_ADDRESS = ['GET /challenge', 'POST /verify', 'limits for browsers'] as const

/**
 * For mutants/, which has a file for each of these, and rest.ts. Stryker counts a file as one test: with three, a mutant runs fewer
 * sections, because only files that reach it run, until one fails.
 */
export const FOR_BROWSERS = [...BY_ADDRESS, 'sites and origins', 'fields of a solution', 'CORS'] as const
export const FOR_BACKENDS = ['POST /verify-token', 'credentials', 'POST /siteverify', 'tokens'] as const
