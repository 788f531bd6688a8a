/** All cases, in order. Each has a file of its own in cases/. */

import { singleUse } from './cases/03-single-use.ts'
import { constantTime } from './cases/13-constant-time.ts'
import type { TortureCase } from './run.ts'

export const CASES: readonly TortureCase[] = [singleUse, constantTime]
