/** Two torture cases in small; torture.test.ts runs the others. */

import { CASES } from './cases.ts'
import { QUICK_CASES, testsInSmall } from './in-small.ts'

testsInSmall(CASES.filter(({ number }) => QUICK_CASES.includes(number)))
