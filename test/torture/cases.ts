/** All cases, in order. Each has a file of its own in cases/. */

import { singleUse } from './cases/03-single-use.ts'
import { overload } from './cases/09-overload.ts'
import { soak } from './cases/11-soak.ts'
import { disk } from './cases/12-disk.ts'
import type { TortureCase } from './run.ts'

export const CASES: readonly TortureCase[] = [singleUse, overload, soak, disk]
