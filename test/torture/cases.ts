/** All cases, in order. Each has a file of its own in cases/. */

import { httpConformance } from './cases/02-http-conformance.ts'
import { singleUse } from './cases/03-single-use.ts'
import type { TortureCase } from './run.ts'

export const CASES: readonly TortureCase[] = [httpConformance, singleUse]
