/** All cases, in order. Each has a file of its own in cases/. */

import { singleUse } from './cases/03-single-use.ts'
import { limits } from './cases/08-limits.ts'
import { slowClients } from './cases/10-slow-clients.ts'
import { constantTime } from './cases/13-constant-time.ts'
import type { TortureCase } from './run.ts'

export const CASES: readonly TortureCase[] = [singleUse, limits, slowClients, constantTime]
