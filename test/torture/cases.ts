/** All cases, in order. Each has a file of its own in cases/. */

import { singleUse } from './cases/03-single-use.ts'
import { storeKill } from './cases/05-store-kill.ts'
import { failover } from './cases/06-failover.ts'
import { sickRedis } from './cases/07-sick-redis.ts'
import type { TortureCase } from './run.ts'

export const CASES: readonly TortureCase[] = [singleUse, storeKill, failover, sickRedis]
