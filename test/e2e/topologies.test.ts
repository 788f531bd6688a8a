/** The whole flow on Redis as a Cluster and behind Sentinels. */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from '../support/client.ts'
import { freshAddress } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import { RedisServer } from '../support/redis.ts'
import { RedisCluster } from '../support/redis-cluster.ts'
import { TestService } from '../support/service.ts'

async function wholeFlow(url: string): Promise<void> {
  const service = await TestService.start('embedded', { REDIS_URL: url })
  const client = new Client(service.url)
  const site = await service.createSite({ difficulty: { base: 16, min: 16, max: 16 } })
  for (let index = 0; index < 5; index++) {
    const from = freshAddress()
    const token = await client.token(site.siteKey, { from })
    const first = await client.verifyToken(site.apiKey, { token, expectedIp: from })
    assert.deepEqual([first.status, first.json.ip], [200, from])
    const again = await client.verifyToken(site.apiKey, { token })
    assert.deepEqual([again.status, again.json.code], [400, 'token-used'])
  }
  await service.stop()
}

test('Redis Cluster of three primaries', async () => {
  const cluster = await RedisCluster.start()
  await wholeFlow(cluster.url)
  await wholeFlow(`redis+cluster://127.0.0.1:${cluster.servers[1]!.port}`)
  await cluster.stop()
})

test('Redis behind a Sentinel', async () => {
  const primary = await RedisServer.start()
  const dir = mkdtempSync(join(tmpdir(), 'powgate-sentinel-'))
  const port = await freePort()
  const config = join(dir, 'sentinel.conf')
  writeFileSync(
    config,
    `port ${port}\nbind 127.0.0.1\ndir ${dir}\nsentinel monitor main 127.0.0.1 ${primary.port} 1\n`,
  )
  const sentinel = spawn('redis-server', [config, '--sentinel'], { stdio: 'ignore' })
  try {
    await wholeFlow(`redis+sentinel://127.0.0.1:${port}/main`)
  } finally {
    sentinel.kill('SIGKILL')
    await primary.stop()
    rmSync(dir, { recursive: true, force: true })
  }
})
