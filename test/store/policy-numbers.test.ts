/** Each number of the rules is written once: with other numbers, both stores count as the domain does with these. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
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
const { EmbeddedStore } = await import('../../src/store/embedded/store.ts')
const { openRedis, openTwice } = await import('./harness.ts')
const { metersConformance } = await import('./meters-conformance.ts')

const dataDirs: string[] = []
after(() => {
  for (const path of dataDirs) rmSync(path, { recursive: true, force: true })
})
metersConformance('embedded, other numbers', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-numbers-'))
  dataDirs.push(dataDir)
  return openTwice(
    clock => {
      const clocks = { monotonicMs: () => clock.now, wallMs: () => clock.now }
      return new EmbeddedStore({ dataDir, bytesMax: 2 ** 30, sweeps: false, clocks })
    },
    () => {},
  )
})
metersConformance('redis, other numbers', async () => {
  const server = await RedisServer.start()
  return openTwice(
    clock => openRedis(server.url, { clock: () => clock.now }),
    () => server.stop(),
  )
})
