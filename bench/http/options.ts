/** The options of `npm run bench:http`. */

import { integer, number, toggle, type Values } from '../../test/harness/command-line.ts'
import { ENDPOINTS } from '../../test/harness/load/traffic.ts'
import { STORE_KINDS } from '../../test/harness/service.ts'
import { choices } from '../report/options.ts'
import { OUTPUT } from '../report/report.ts'

export const OPTIONS = {
  store: choices(STORE_KINDS, 'Only these stores (redis needs redis-server on the path)'),
  endpoint: choices(ENDPOINTS, 'Only these endpoints'),
  seconds: number(3, 0.1, 60, 'Measured time of a case'),
  warmup: number(3, 0, 60, 'Seconds of load before it: compilation by V8 takes over 1 s'),
  repeat: integer(5, 1, 100, 'Repetitions, each on a fresh server and store'),
  connections: integer(64, 1, 512, 'Each with one request under way'),
  direct: toggle('No X-Forwarded-For: one client address, limits raised.'),
  noLatency: toggle('Full load only.'),
  busy: choices(['25', '50', '75'], 'Fixed rates at which the worker is so busy, in per cent'),
  rate: number(undefined, 1, 100_000, 'Requests/s of one fixed rate in place of those'),
  profile: toggle('Instead: CPU profiles of the worker at full load, as files.'),
  check: toggle('End with code 1 if a budget or an aim is missed.'),
  ...OUTPUT,
}

export type Options = Values<typeof OPTIONS>
