/** The whole contract, sections 1 to 8, over HTTP against the forked service with its default limits and lifetimes, on each store. */

import { minuteTests } from './minute.ts'
import { CONTRACT } from './sections.ts'
import { onEachStore } from './support.ts'

/** One section alone, for test/faults. */
const section = process.env.TEST_SECTION

if (section === undefined) onEachStore(CONTRACT, { waiting: minuteTests })
else onEachStore({ [section]: CONTRACT[section]! })
