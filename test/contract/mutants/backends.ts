/** Run by test/mutants.config.mjs, with the service in this process (harness/service.ts). */

import { FOR_BACKENDS, only } from '../sections.ts'
import { onEachStore } from '../support.ts'

onEachStore(only(...FOR_BACKENDS))
