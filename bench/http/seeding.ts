/**
 * Real visitors fetch a challenge and come back with its solution, so that the store has a record of their address by
 * then. Traffic for /verify is minted, not fetched: here its visitors fetch one each, all alike, before they are loaded.
 */

import type { LoadProcess } from './load-process.ts'
import { MARKERS, type TrafficSpec } from './traffic.ts'

/** Records of addresses live for a minute: the first must still be there when its visitor comes back. */
export const SEED_MS_MAX = 45_000

/**
 * Sends the /challenge that comes before each request of `traffic`, in the same order. Returns how many were sent
 * within the time; rejects if one was not answered well.
 *
 * @param msMax at most SEED_MS_MAX
 */
export async function seed(
  load: LoadProcess,
  traffic: TrafficSpec,
  { port, connections, msMax }: { port: number; connections: number; msMax: number },
): Promise<number> {
  const challenges: TrafficSpec = { ...traffic, endpoint: 'challenge' }
  const { sent } = await load.sendAll(challenges, { port, connections, msMax, marker: MARKERS.challenge })
  return sent
}
