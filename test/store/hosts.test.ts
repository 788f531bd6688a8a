/** Hosts that share a store: what each is told about others that differ in what all must have alike, and the notes by which they know. */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/log/logger.ts'
import { HostRegistry } from '../../src/process/host-registry.ts'
import { differences, type HostNote } from '../../src/store/hosts.ts'
import { openSiteStore } from '../../src/store/open.ts'
import { eventually } from '../harness/eventually.ts'
import { RedisServer } from '../harness/redis.ts'
import { TEST_SECRET } from '../harness/service.ts'

const host: HostNote = {
  id: 'a',
  name: 'web-1:8080',
  version: '0.1.0',
  startedAt: 0,
  workers: 2,
  shared: { POWGATE_REDIS_SHARDS: 16, POWGATE_CHALLENGE_SECONDS: 120 },
  signs: 'k1',
  verifies: ['k1'],
}
const other = (some: Partial<HostNote>): HostNote => ({ ...host, id: 'b', name: 'web-2:8080', ...some })

test('hosts with the same settings agree, also of versions that share more', () => {
  assert.deepEqual(differences(host, other({})), [])
  assert.deepEqual(differences(host, other({ shared: { ...host.shared, later: 3 } })), [])
  assert.deepEqual(differences({ ...host, shared: { ...host.shared, later: 3 } }, other({})), [])
})

test('clocks that differ by over 5 s are told, by how much and of whom; hosts that do not say theirs agree', () => {
  const told = (ownAheadMs: number, theirsAheadMs: number) =>
    differences({ ...host, clockAheadMs: ownAheadMs }, other({ clockAheadMs: theirsAheadMs }))
  assert.deepEqual(told(600_000, 40), ['clock: 600 s ahead of web-2:8080: set both by NTP'])
  assert.deepEqual(told(-40, 600_000), ['clock: 600 s behind web-2:8080: set both by NTP'])
  for (const [own, theirs] of [
    [5000, 0],
    [0, 5000],
    [600_000, 600_000],
  ] as const)
    assert.deepEqual(told(own, theirs), [])
  assert.deepEqual(differences({ ...host, clockAheadMs: 600_000 }, other({})), [])
  assert.deepEqual(differences(host, other({ clockAheadMs: 600_000 })), [])
})

test('a rotation of secrets by the documented steps is no difference at any step, other orders are', () => {
  const steps = [['k1'], ['k1', 'k2'], ['k2', 'k1'], ['k2']]
  const at = (verifies: readonly string[]) => ({ signs: verifies[0]!, verifies })
  for (let step = 1; step < steps.length; step++) {
    const [before, after] = [at(steps[step - 1]!), at(steps[step]!)]
    assert.deepEqual(differences({ ...host, ...before }, other(after)), [], `step ${step}`)
    assert.deepEqual(differences({ ...host, ...after }, other(before)), [], `step ${step}`)
  }
  const [first] = differences(host, other(at(['k2', 'k1'])))
  assert.match(first!, /^POWGATE_SECRETS: lacks the secret that signs on web-2:8080/)
  const [second] = differences({ ...host, ...at(['k2', 'k1']) }, other({}))
  assert.match(second!, /^POWGATE_SECRETS: the first, which signs here \(SHA-256 k2\.\.\.\), is not known /)
})

/** A host that has joined on a Redis of its own, until the test ends. */
async function joinedHost(t: TestContext) {
  const redis = await RedisServer.start()
  const registry = new HostRegistry(createLogger('silent'))
  t.after(() => registry.leave())
  const config = await registry.join(loadConfig({ REDIS_URL: redis.url, POWGATE_SECRETS: TEST_SECRET }))
  const clients = async () => (await redis.cli('CLIENT', 'LIST')).trim().split('\n').length - 1 // without redis-cli itself
  const livingHosts = async () => {
    const store = await openSiteStore(config)
    return store.livingHosts().finally(() => store.close())
  }
  return { redis, registry, config, clients, livingHosts }
}

test('notes of hosts: of two reloads at once the note of the later counts, and one connection is left', async t => {
  const { registry, config, clients } = await joinedHost(t)
  await Promise.all([registry.reconnect(config), registry.reconnect({ ...config, workers: 7 })])
  assert.equal(await clients(), 1)
  assert.equal(registry.living.map(({ workers }) => workers).join(), '7')
})

test('notes of hosts: in a store that lost all, a host writes its number of shards anew, and a later one leaves it', async t => {
  const { redis, registry, config, livingHosts } = await joinedHost(t)
  await redis.ask('flushall')
  await registry.reconnect({ ...config, redisShards: 7 })
  assert.equal((await livingHosts()).shards, 7)
  await registry.reconnect(config)
  assert.equal((await livingHosts()).shards, 7)
})

test('notes of hosts: a host that leaves during a reload leaves neither note nor connection', async t => {
  const { registry, config, clients, livingHosts } = await joinedHost(t)
  await Promise.all([registry.reconnect(config), registry.leave()])
  assert.deepEqual((await livingHosts()).living, [])
  await eventually(5000, 'every connection is closed', async () => (await clients()) === 0)
})
