/** The process that runs a crowd of slow clients: see slow-crowd.ts. */

import { setPriority } from 'node:os'
import { SLOW_KINDS, SlowClient } from './slow-clients.ts'
import type { CrowdOrder, CrowdState } from './slow-crowd.ts'

const TELL_MS = 100
const STEP_MS = 5
/** Clients opened in each step: 2,000 a second. */
const STEP_CLIENTS = 10

// A lower priority than the measured clients and the service.
setPriority(10)
process.once('message', (order: CrowdOrder) => void open(order))
process.once('disconnect', () => process.exit())

async function open({ kinds, port, siteKey, header }: CrowdOrder): Promise<void> {
  const first = Buffer.from(header, 'hex')
  const clients: SlowClient[] = []
  for (const index of kinds) {
    clients.push(new SlowClient(SLOW_KINDS[index]!, port, siteKey, first))
    if (clients.length % STEP_CLIENTS === 0) await new Promise(resolve => setTimeout(resolve, STEP_MS))
  }
  setInterval(() => process.send!(stateOf(clients)), TELL_MS)
}

function stateOf(clients: readonly SlowClient[]): CrowdState {
  const connected = clients.filter(({ connectedAtMs }) => connectedAtMs !== undefined)
  const livedMs: Record<string, number> = {}
  const leftKinds = new Set<string>()
  let left = 0
  for (const { kind, connectedAtMs, endedAtMs } of clients) {
    if (endedAtMs === undefined) {
      left++
      leftKinds.add(kind.name)
    } else if (connectedAtMs !== undefined) {
      livedMs[kind.group] = Math.max(livedMs[kind.group] ?? 0, endedAtMs - connectedAtMs)
    }
  }
  const failed = clients.filter(
    client => client.connectedAtMs === undefined && client.endedAtMs !== undefined,
  )
  return { connected: connected.length, failed: failed.length, left, leftKinds: [...leftKinds], livedMs }
}
