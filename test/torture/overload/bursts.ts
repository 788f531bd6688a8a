/** Thousands of requests at one moment are many, but no overload: none is refused. */

import { TARGET_MS } from './closed-loops.ts'
import type { Stage } from './stage.ts'

const CONNECTIONS = 5000
const CONNECTIONS_BOUNDED = 1000
const BURSTS = 5
const BURSTS_BOUNDED = 2
const QUIET_MS = 1000

export async function bursts({ run, kind, rows, visitors, base }: Stage): Promise<void> {
  const connections = run.count(CONNECTIONS, CONNECTIONS_BOUNDED)
  const { lastMs, answered, shed, bad, badAnswers, ownLateMaxMs } = await visitors.burst({
    port: base.port,
    siteKey: base.site.siteKey,
    connections,
    bursts: run.count(BURSTS, BURSTS_BOUNDED),
    quietMs: run.count(QUIET_MS, QUIET_MS / 4),
  })
  const name = `${kind}: bursts of ${connections.toLocaleString('en-US')} challenges`
  for (const ms of lastMs) rows.add(name, { 'last waited ms': ms })
  rows.add(name, { refused: shed, 'load itself late at most ms': ownLateMaxMs })
  run.progress(`${name}: ${shed} refused, the last waited ${Math.max(...lastMs).toFixed(0)} ms`)
  run.check(bad === 0, () => `${name}: ${bad} other answers, such as ${badAnswers[0]}`)
  run.check(answered > 0, `${name}: nobody was served`)
  // On a slow machine a burst may take so long that it counts as a standing queue.
  const isRight = !run.isFull && Math.max(...lastMs) > 5 * TARGET_MS
  run.check(shed === 0 || isRight, `${name}: ${shed} were refused`)
}
