/** Each number of the rules is written once: with other numbers, both stores count as the domain does with these. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { POLICY } from '../../src/domain/policy.ts'
import { RedisServer } from '../harness/redis.ts'

// Before the scripts are read, which take the numbers over.
Object.assign(POLICY, {
  networkRecentMs: 25_000,
  siteRecentMs: 90_000,
  usualMs: 7_200_000,
  learnsAllMs: 60_000,
  learnedShare: 0.25,
  tolerated: 2,
  returningProofs: 5,
})
const { openEmbedded, serveStore } = await import('../harness/embedded.ts')
const { openRedis, openTwice } = await import('./harness.ts')
const { metersConformance } = await import('./meters-conformance.ts')

metersConformance('embedded, other numbers', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-numbers-'))
  const shared = { clock: { now: 0 } }
  const now = () => shared.clock.now
  const server = await serveStore(dataDir, { clocks: { monotonicMs: now, wallMs: now } })
  return openTwice(
    clock => {
      shared.clock = clock
      return openEmbedded(dataDir, { clock: () => clock.now })
    },
    async () => {
      await server.close(false)
      rmSync(dataDir, { recursive: true, force: true })
    },
  )
})
metersConformance('redis, other numbers', async () => {
  const server = await RedisServer.start()
  return openTwice(
    clock => openRedis(server.url, { clock: () => clock.now }),
    () => server.stop(),
  )
})
