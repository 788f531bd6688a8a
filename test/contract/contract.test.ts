/** The whole contract, sections 1 to 8, over HTTP against the forked service with its default limits and lifetimes, on each store. */

import { minuteTests } from './minute.ts'
import { CONTRACT } from './sections.ts'
import { onEachStore } from './support.ts'

onEachStore(CONTRACT, { waiting: minuteTests })
