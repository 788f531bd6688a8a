/**
 * Two hosts on one Redis, and a third that differs: `powgate hosts`, `check`, the metric and the log tell of it. The third is only
 * a note in Redis, which is kept for 20 s and so is written again before each look. The Redis belongs to the first host.
 */

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/log/logger.ts'
import { HostRegistry } from '../../src/process/host-registry.ts'
import { eventually } from '../harness/eventually.ts'
import { startObserved } from '../harness/metrics.ts'
import { freePort } from '../harness/ports.ts'
import { leftovers } from '../harness/processes.ts'
import { TestService } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { Powgate } from './cli-process.ts'

const first = await startObserved('redis')
const second = await TestService.start('shared', { REDIS_URL: first.service.redis!.url })
const powgate = new Powgate(second.env)
const store = await second.openSites()
leftovers.add({ stop: () => store.close() })

/** A host of this store that differs from `second` in these settings, once it has joined. */
async function joined(env: Record<string, string>): Promise<HostRegistry> {
  const hosts = new HostRegistry(createLogger('silent'))
  await hosts.join(loadConfig({ ...second.env, ...env }))
  return hosts
}

test('hosts that agree are listed; one that differs is told by hosts, check, the metric and the log', async () => {
  const { hosts, differences } = await powgate.json('hosts')
  const names = hosts.map(({ name }: { name: string }) => name) as string[] // sorted, as `powgate hosts` prints them
  const ports = [first.service, second].map(({ port }) => `:${port}`)
  assert.deepEqual(names.map(name => name.replace(/.*:/, ':')).toSorted(), ports.toSorted())
  assert.deepEqual([differences, Object.keys(hosts[0])], [[], ['name', 'version', 'startedAt', 'workers']])
  const table = /^HOST +VERSION +SINCE +WORKERS\n\S+:\d+ +\S+ +\S+Z +2\n\S+:\d+ .+\n\nThey agree\.\n$/
  assert.match(await powgate.text('hosts'), table)
  const others = new RegExp(`other hosts +\\S+:${first.service.port} \\(powgate `)
  assert.match(await powgate.text('check'), others)
  assert.equal((await first.scrape()).value('powgate_hosts_differ'), 0)

  const [note] = (await store.livingHosts()).living
  const shared = { ...note!.shared, POWGATE_TOKEN_SECONDS: 600 }
  // `powgate hosts` compares each pair once, and tells of it at the name that sorts first: never at `zz`.
  const noteOther = () => store.noteHost('other', { ...note!, id: 'other', name: 'zz:8080', shared })
  await noteOther()
  const line = 'POWGATE_TOKEN_SECONDS: 300 here, 600 on zz:8080'
  const found = names.map(name => `${name}: ${line}`)
  const asJson = await powgate.run('hosts --json')
  assert.deepEqual([asJson.code, JSON.parse(asJson.out).differences], [1, found])
  const asTable = await powgate.run('hosts')
  assert.equal(asTable.code, 1)
  assert.ok(asTable.out.endsWith(`\n\n${found.join('\n')}\n`))
  await noteOther()
  const check = await powgate.run('check --json')
  const { ok, problems } = JSON.parse(check.out)
  assert.deepEqual([check.code, ok, problems[0]], [1, false, line])
  assert.match(problems[1], /^the hosts .*must agree, .*set the same, .* or stop zz:8080 \([^,]*\) first$/)
  await eventually(60_000, 'the difference is seen', async () => {
    await noteOther()
    return (await first.scrape()).value('powgate_hosts_differ') === 1
  })
  assert.match(first.service.output, /hosts of this store differ/)
  await store.noteHost('other', null)
})

test('a host whose clock is ten minutes ahead is told', async () => {
  const living = (await store.livingHosts()).living.filter(({ name }) => name !== 'zz:8080')
  const now = Date.now
  const clock = mock.method(Date, 'now', () => now() + 600_000)
  await store.noteHost('ahead', { ...living[0]!, id: 'ahead', name: 'zz:8080' }) // a note has the time of who writes it
  clock.mock.restore()
  const behind = living.map(({ name }) => `${name}: clock: 600 s behind zz:8080: set both by NTP`).sort()
  assert.deepEqual(JSON.parse((await powgate.run('hosts --json')).out).differences, behind)
  await store.noteHost('ahead', null)
})

test('a host that was killed may start with other settings; one that shares its name with a living host may not', async () => {
  const { living } = await store.livingHosts()
  const own = living.find(({ name }) => name.endsWith(`:${second.port}`))!
  const PORT = '1' // a host's name is its machine and its port
  const name = own.name.replace(/\d+$/, PORT)
  const shared = { ...own.shared, POWGATE_TOKEN_SECONDS: 600, POWGATE_IPV6_PREFIX: 56 }
  // A new host that finds a note of its name takes it for one of a killed run of itself, unless the note is renewed while it waits.
  const noteNamesake = () => store.noteHost('namesake', { ...own, id: 'namesake', name, shared })
  await noteNamesake()
  const hosts = await joined({ PORT })
  assert.deepEqual([hosts.differencesToOthers, hosts.living.length], [[], living.length + 1])
  await hosts.leave()

  await noteNamesake()
  let isRenewing = true
  const renew = async () => {
    for (; isRenewing; await noteNamesake()) await sleep(1000)
  }
  const found = `POWGATE_TOKEN_SECONDS: 300 here, 600 on ${name}\nPOWGATE_IPV6_PREFIX: 64 here, 56 on `
  const difference = new RegExp(`^OperatorError: ${found}`)
  await Promise.all([
    assert.rejects(joined({ PORT }), difference).finally(() => (isRenewing = false)),
    renew(),
  ])
  await store.noteHost('namesake', null)
})

test('check beside the only host, which is this service: a value that SIGHUP changes is a note, a secret that it lacks a problem', async () => {
  const own = { PORT: String(await freePort()), POWGATE_REDIS_PREFIX: 'alone' }
  const hosts = await joined(own)
  const changed = powgate.with({ ...own, POWGATE_TOKEN_SECONDS: '600' })
  const { notes } = await changed.json('check')
  assert.match(notes.join('\n'), /^POWGATE_TOKEN_SECONDS: 600 here, 300 on \S+, which is this service/m)
  const { err } = await changed.with({ POWGATE_SECRETS: 'x'.repeat(40) }).run('check')
  await hosts.leave()
  assert.match(err, /^POWGATE_SECRETS: lacks the secret that signs on \S+ .*\nthe hosts of one/)
})

test('of two hosts that differ and start at once, one starts', async () => {
  const starts = ['300', '600'].map(seconds =>
    joined({ PORT: seconds, POWGATE_REDIS_PREFIX: 'at-once', POWGATE_TOKEN_SECONDS: seconds }),
  )
  const started = (await Promise.allSettled(starts)).filter(result => result.status === 'fulfilled')
  for (const { value } of started) await value.leave() // not before the other has looked
  assert.equal(started.length, 1)
})

test('with the embedded store there is one host', async () => {
  const alone = new Powgate({ POWGATE_DATA_DIR: temporaryDir('hosts') })
  assert.equal(await alone.text('hosts'), 'The embedded store has one host: this machine.\n')
  assert.deepEqual(await alone.json('hosts'), { hosts: [], differences: [] })
})
