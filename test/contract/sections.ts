/** The whole contract, §1 to §8, without the tests that take a minute. */

import { hostileBodyTests, solutionFieldTests } from './bodies.ts'
import { challengeTests } from './challenge.ts'
import { backendLimitTests, limitTests } from './limits.ts'
import { corsTests, methodTests } from './methods.ts'
import { puzzleTests } from './puzzles.ts'
import { scoreTests } from './score.ts'
import { siteTests } from './sites.ts'
import { siteverifyTests } from './siteverify.ts'
import { onEachStore, type Sections } from './support.ts'
import { tokenTests } from './token.ts'
import { verifyTests } from './verify.ts'
import { credentialTests, verifyTokenTests } from './verify-token.ts'

export const CONTRACT: Sections = {
  'GET /challenge': challengeTests,
  'sites and origins': siteTests,
  'POST /verify': verifyTests,
  puzzles: puzzleTests,
  'fields of a solution': solutionFieldTests,
  'score and IP rules': scoreTests,
  tokens: tokenTests,
  'POST /verify-token': verifyTokenTests,
  credentials: credentialTests,
  'bodies that are no good': hostileBodyTests,
  'paths and methods': methodTests,
  CORS: corsTests,
  'limits for browsers': limitTests,
  'limits for backends': backendLimitTests,
  'POST /siteverify': siteverifyTests,
}

export function onSections(...names: readonly string[]): void {
  onEachStore(Object.fromEntries(names.map(name => [name, CONTRACT[name]!])))
}

export const only = (isWanted: (name: string) => boolean): Sections =>
  Object.fromEntries(Object.entries(CONTRACT).filter(([name]) => isWanted(name)))

/** Sections whose answers depend on the visitor's address. */
export const BY_ADDRESS = ['GET /challenge', 'POST /verify', 'limits for browsers']
