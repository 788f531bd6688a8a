/** The options of `npm run bench:http`. */

import { integer, number, toggle, type Values } from '../../test/harness/command-line.ts'
import { STORE_KINDS } from '../../test/harness/service.ts'
import { choices } from '../report/options.ts'
import { OUTPUT } from '../report/report.ts'
import { ENDPOINTS } from './traffic.ts'

export const OPTIONS = {
  store: choices(STORE_KINDS, 'Only these stores (redis needs redis-server on the path)'),
  endpoint: choices(ENDPOINTS, 'Only these endpoints'),
  seconds: number(3, 0.1, 60, 'Measured time of a case'),
  warmup: number(3, 0, 60, 'Seconds of load before it: compilation by V8 takes over 1 s'),
  repeat: integer(5, 1, 100, 'Repetitions, each on a fresh server and store'),
  busy: choices(['25', '50', '75'], 'Fixed rates at which the worker is so busy, in per cent'),
  profile: toggle('Instead: CPU profiles of the worker at full load, as files.'),
  ...OUTPUT,
}

export type Options = Values<typeof OPTIONS>
