/** All cases, in order, each in a file of cases/. Numbers without a file were cases that are gone: the others keep theirs. */

import { badInputs } from './cases/01-bad-inputs.ts'
import { httpConformance } from './cases/02-http-conformance.ts'
import { failover } from './cases/06-failover.ts'
import { sickRedis } from './cases/07-sick-redis.ts'
import { overload } from './cases/09-overload.ts'
import { soak } from './cases/11-soak.ts'
import { constantTime } from './cases/13-constant-time.ts'
import type { TortureCase } from './run.ts'

export const CASES: readonly TortureCase[] = [
  badInputs,
  httpConformance,
  failover,
  sickRedis,
  overload,
  soak,
  constantTime,
]
