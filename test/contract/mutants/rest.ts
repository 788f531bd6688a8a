/** Run by test/mutants.config.mjs, with the service in this process (harness/service.ts). */

import { FOR_BACKENDS, FOR_BROWSERS, without } from '../sections.ts'
import { onEachStore } from '../support.ts'

onEachStore(without(...FOR_BROWSERS, ...FOR_BACKENDS))
