/**
 * Fetches a challenge for each visitor before /verify is measured, so that the store has a record of each address, as it
 * has of real visitors. The measured requests themselves are minted.
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
