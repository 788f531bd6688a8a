import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDir } from '../harness/temporary.ts'
import { runBench } from './run-bench.ts'

const folder = temporaryDir('capacity')
const spread = (median: number) => ({ median, min: median, max: median })

test('capacity is computed from saved results', async () => {
  const cases = ['challenge', 'verify', 'verify-token'].flatMap(endpoint => [
    { endpoint, server: 'embedded', figures: { cpuUs: spread(30) } },
    { endpoint, server: 'redis', figures: { cpuUs: spread(20), redisUs: spread(10) } },
  ])
  const file = join(folder, 'http.json')
  writeFileSync(file, JSON.stringify({ cases }))
  const { stdout } = await runBench('capacity', '--http', file, '--json')
  const { loads, attacks } = JSON.parse(stdout)
  // 10,000 visitors of 60 us are 0.6 cores of work, one core at 60 %; of Redis half of that.
  assert.deepEqual(loads[0], { rate: 10_000, embeddedCores: 2, workerCores: 1, redisPrimaries: 1 })
  assert.equal(loads[2].workerCores, 100)
  // 2^18 hashes at 90 MH/s are 2.9 ms, and a visitor costs 90 us.
  assert.equal(Math.round(attacks[1].nativeTimesOurs), 32)
  await assert.rejects(runBench('capacity'), { code: 2, stderr: /^--http: expected a file/ })
})
