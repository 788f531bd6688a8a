import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { KEPT_MS_A_PROOF } from '../../src/domain/meters.ts'
import { nonceTerms } from '../../src/domain/nonce.ts'
import { apiKeyId } from '../../src/domain/site.ts'
import { createSite, revokeApiKey } from '../../src/sites/sites.ts'
import { discardStaleState, isStateOfThisBoot, openState } from '../../src/store/embedded/environment.ts'
import { ownDataDir } from '../../src/store/embedded/owner.ts'
import { EmbeddedRecords } from '../../src/store/embedded/records.ts'
import { EmbeddedRequests, SYSTEM_CLOCKS } from '../../src/store/embedded/requests.ts'
import { EmbeddedStore } from '../../src/store/embedded/store.ts'
import { eventually } from '../harness/eventually.ts'
import { storeConformance } from './conformance.ts'
import {
  challengeOn,
  freshKey,
  freshNonce,
  meteringOf,
  nonceOn,
  openTwice,
  redeemable,
  redemptionOn,
  type TestStore,
  tempDir,
  tokenOn,
} from './harness.ts'

async function make(): Promise<TestStore> {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-embedded-'))
  discardStaleState(dataDir)
  const opened = await openTwice(
    clock => new EmbeddedStore({ dataDir, bytesMax: 2 ** 30, sweeps: false, clocks: clocksOf(clock) }),
    () => rmSync(dataDir, { recursive: true, force: true }),
  )
  const expires = async (name: string) => {
    const { file, windows } = openState(dataDir)
    const value = windows.get(Buffer.from(name.startsWith('e:') ? name : `a${name}e`))
    await file.close()
    return value === undefined ? -1 : value.readUInt32BE(0) - opened.clock.now / 1000
  }
  return { ...opened, expires }
}

storeConformance('embedded', make)

function writeBootFile(dataDir: string, text: string): void {
  writeFileSync(join(dataDir, 'state', 'boot-id'), text)
}

/** Spends a nonce that lives for two minutes; above a limit of 64 its mark has a key of its own. */
async function spendOn(requests: EmbeddedRequests, addressKey: string, nonce: string, limit = 30) {
  const expiresAtMs = nonceTerms(nonce).issuedAtMs + 120_000
  const spend = { nonce, storeEpoch: requests.epochOf(), expiresAtMs }
  return nonceOn({ requests }, { addressKey, addressLimit: limit, siteLimit: limit, spend })
}

const clocksOf = (clock: { now: number }) => ({ monotonicMs: () => clock.now, wallMs: () => clock.now })

function bare(dataDir: string) {
  const clock = { now: Date.UTC(2026, 0, 1) }
  const state = openState(dataDir)
  return { clock, state, requests: new EmbeddedRequests(state, clocksOf(clock), () => {}) }
}

test('embedded: what has expired is swept, what has not stays', async t => {
  const dataDir = tempDir(t)
  const { clock, state, requests } = bare(dataDir)
  const [addressKey, kept] = [freshKey(), freshNonce(clock.now + 600_000)]
  for (let index = 0; index < 700; index++) {
    await challengeOn({ requests }, { addressKey: freshKey() })
    await spendOn(requests, freshKey(), freshNonce(clock.now))
    await spendOn(requests, freshKey(), freshNonce(clock.now), 1000)
  }
  assert.deepEqual([state.windows.getKeysCount(), state.marks.getKeysCount()], [2100, 700])
  const countsAfterSweep = () => {
    for (let count = 0; count < 10; count++) requests.sweep(500)
    return [state.windows.getKeysCount(), state.marks.getKeysCount()]
  }
  clock.now += 61_000
  assert.deepEqual(countsAfterSweep(), [700, 700], 'an address whose nonce lives is kept')

  clock.now += 600_000
  assert.equal(await spendOn(requests, addressKey, kept), 'spent')
  assert.equal(await spendOn(requests, freshKey(), kept, 1000), 'spent')
  assert.deepEqual(countsAfterSweep(), [2, 1])
  assert.equal(await spendOn(requests, addressKey, kept), 'used')
  assert.equal(await spendOn(requests, freshKey(), kept, 1000), 'used')
  await state.file.close()
})

test('embedded: the meter of a network that is not swept yet reads as a new one once it is dead', async t => {
  const { clock, state, requests } = bare(tempDir(t))
  const addressKey = freshKey()
  const metering = meteringOf(addressKey)
  await nonceOn({ requests }, { addressKey, metering, spend: redeemable({ requests }, clock.now) })
  const usualAfter = async (ms: number) => {
    clock.now += ms
    const answer = await challengeOn({ requests }, { addressKey, metering })
    assert.ok(answer.status === 'admitted')
    return Math.round(answer.meters!.networks[0]!.usual)
  }
  assert.deepEqual([await usualAfter(KEPT_MS_A_PROOF - 1), await usualAfter(1)], [1, 0])
  await state.file.close()
})

test('embedded: half full, a network that is not known gets no meter', async t => {
  const { clock, state, requests } = bare(tempDir(t))
  const recentAfter = async (addressKey: string) => {
    const asked = { addressKey, metering: meteringOf(addressKey) }
    await nonceOn({ requests }, { ...asked, spend: redeemable({ requests }, clock.now) })
    const answer = await challengeOn({ requests }, asked)
    assert.ok(answer.status === 'admitted')
    return answer.meters!.networks[0]!.recent
  }
  const [known, other] = [freshKey(), freshKey()]
  assert.equal(await recentAfter(known), 1)
  requests.meters.isHalfFull = true
  assert.deepEqual([await recentAfter(other), await recentAfter(known)], [0, 2])
  await state.file.close()
})

test('embedded: no step of the wall clock lets a token be redeemed twice', async t => {
  for (const [stepMs, backAfterMs] of [
    [600_000, 1000],
    [600_000, 300_000],
    [-600_000, 500_000],
  ] as const) {
    const dataDir = tempDir(t)
    const wall = { now: Date.UTC(2026, 0, 1) }
    const machine = { now: 5_000_000 }
    const state = openState(dataDir)
    const clocks = { monotonicMs: () => machine.now, wallMs: () => wall.now }
    const requests = new EmbeddedRequests(state, clocks, () => {})
    const redeem = redeemable({ requests }, wall.now)
    await redemptionOn({ requests }, { redeem })
    wall.now += stepMs
    requests.sweep(500)
    wall.now += backAfterMs
    machine.now += backAfterMs
    requests.sweep(500)
    if (stepMs > 0) wall.now -= stepMs
    const text = `${stepMs} ms, for ${backAfterMs} ms`
    assert.equal(await tokenOn({ requests }, { redeem }), 'used', text)
    await state.file.close()
  }
})

test('embedded: a service that finds the owner of another container in its data directory ends, at its start and later', async t => {
  const other = 'another-boot pid:[1]'
  for (const name of ['owner.1', `owner.${process.pid}`]) {
    const dataDir = tempDir(t)
    // Both start at the same moment: neither has seen the other's file before it wrote its own.
    const started = ownDataDir(dataDir, assert.fail)
    assert.ok(existsSync(join(dataDir, `owner.${process.pid}`)))
    writeFileSync(join(dataDir, name), other)
    await assert.rejects(
      started,
      /^StoreSetupError: POWGATE_DATA_DIR: .* is in use by a service in another container/,
    )
  }
  // Frozen until another took the directory.
  const dataDir = tempDir(t)
  const module = new URL('../../src/store/embedded/owner.ts', import.meta.url).href
  const code = `await (await import('${module}')).ownDataDir('${dataDir}', console.error); console.log('owns'); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code])
  t.after(() => child.kill('SIGKILL'))
  let errors = ''
  child.stderr.on('data', text => (errors += text))
  const closed = once(child, 'close')
  await once(child.stdout, 'data')
  writeFileSync(join(dataDir, 'owner.1'), other)
  assert.deepEqual(await closed, [1, null], errors)
  assert.match(errors, /is in use by a service in another container/)
})

test('embedded: what another process has made is there at once, also in the same turn of the event loop', async t => {
  const dataDir = tempDir(t)
  const store = new EmbeddedStore({ dataDir, bytesMax: 2 ** 30, sweeps: false })
  assert.equal(await store.sites.readSite('nobody'), undefined)
  const src = new URL('../../src', import.meta.url).href
  const script = `
    import { createSite } from '${src}/sites/sites.ts'
    import { EmbeddedStore } from '${src}/store/embedded/store.ts'
    const store = new EmbeddedStore({ dataDir: ${JSON.stringify(dataDir)}, bytesMax: 2 ** 30, sweeps: false })
    process.stdout.write((await createSite(store.sites, { name: 'a' })).site.siteKey)
    await store.close()`
  const readBefore = store.sites.readSite('nobody') // from here on there is a moment that is read of
  const args = ['--import', 'tsx', '--input-type=module', '-e', script]
  const siteKey = execFileSync(process.execPath, args, { encoding: 'utf8' })
  const readAfter = store.sites.readSite(siteKey)
  assert.equal(await readBefore, undefined)
  assert.equal((await readAfter)?.siteKey, siteKey)
  await store.close()
})

test('embedded: marks and limits survive a restart of the service, with the epoch', async t => {
  const dataDir = tempDir(t)
  discardStaleState(dataDir, 'boot 1')
  const first = bare(dataDir)
  const [addressKey, redeem] = [freshKey(), redeemable(first, first.clock.now)]
  await redemptionOn(first, { redeem })
  await challengeOn(first, { addressKey, siteLimit: 1 })
  await first.state.file.close()

  discardStaleState(dataDir, 'boot 1')
  const second = bare(dataDir)
  assert.equal(second.state.epoch, first.state.epoch)
  assert.equal(await tokenOn(second, { redeem }), 'used')
  assert.equal((await challengeOn(second, { addressKey, siteLimit: 1 })).status, 'limited')
  await second.state.file.close()
})

test('embedded: a worker does not open the state of another version, whose workers may be writing there', t => {
  const dataDir = tempDir(t)
  discardStaleState(dataDir, 'boot 1')
  for (const mark of ['boot 1', 'boot 1 layout 2', 'boot 1 layout 33']) {
    writeBootFile(dataDir, mark)
    assert.throws(
      () => openState(dataDir),
      /^StoreSetupError: POWGATE_DATA_DIR: .*another version.*restart the service/,
    )
  }
})

test('embedded: where the machine tells no boot id, no state is of this boot', t => {
  const dataDir = tempDir(t)
  discardStaleState(dataDir, '')
  assert.ok(!isStateOfThisBoot(dataDir, ''))
})

for (const [what, leave] of [
  ['a reboot', (dataDir: string) => discardStaleState(dataDir, 'boot 1')],
  // What the first layout wrote there.
  ['an upgrade to another layout', (dataDir: string) => writeBootFile(dataDir, 'boot 2')],
] as const) {
  test(`embedded: after ${what} the state is thrown away, and tokens of before are refused as forgotten`, async t => {
    const dataDir = tempDir(t)
    discardStaleState(dataDir, 'boot 1')
    const first = bare(dataDir)
    const redeem = redeemable(first, first.clock.now)
    await redemptionOn(first, { redeem })
    await first.state.file.close()
    leave(dataDir)
    writeFileSync(join(dataDir, 'sites-would-be-here'), 'kept')

    discardStaleState(dataDir, 'boot 2')
    assert.ok(existsSync(join(dataDir, 'sites-would-be-here')))
    assert.match(readFileSync(join(dataDir, 'state', 'boot-id'), 'utf8'), /^boot 2 layout \d+$/)
    const second = bare(dataDir)
    assert.notEqual(second.state.epoch, first.state.epoch)
    assert.equal(await tokenOn(second, { redeem }), 'forgotten')
    await second.state.file.close()
  })
}

test('embedded: at its bound it refuses, and takes requests again once there is room', async t => {
  const dataDir = tempDir(t)
  const changes: boolean[] = []
  const onChange = (up: boolean) => changes.push(up)
  const store = new EmbeddedStore({ dataDir, bytesMax: 40_000, sweeps: false, onChange })
  while (changes.length === 0) {
    await Promise.all(Array.from({ length: 500 }, () => challengeOn(store, { addressKey: freshKey() })))
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  assert.deepEqual(changes, [false])
  assert.equal(store.isReady(), false)
  assert.equal((await challengeOn(store, { addressKey: freshKey() })).status, 'unavailable')
  assert.equal((await redemptionOn(store)).status, 'unavailable')
  await store.close()
})

/** @returns sets the free bytes of the disk, as the file system tells them */
function smallDisk(t: TestContext): (freeBytes: number) => void {
  let free = 2 ** 30
  t.mock.method(fs, 'statfsSync', () => ({ blocks: 2 ** 20, bavail: Math.floor(free / 4096), bsize: 4096 }))
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return bytes => {
    free = bytes
  }
}

test('embedded: on a full disk no write is tried, also from the first request on, and a redeemed token stays redeemed', async t => {
  const [dataDir, setFree] = [tempDir(t), smallDisk(t)]
  const told: string[] = []
  const onChange = (up: boolean, cause: string) => told.push(`${up}: ${cause}`)
  const options = { dataDir, bytesMax: 2 ** 30, sweeps: true, onChange }
  const before = new EmbeddedStore(options)
  const redeem = redeemable(before)
  assert.equal(await tokenOn(before, { redeem }), 'redeemed')
  const written = () => readFileSync(join(dataDir, 'state', 'data.mdb'))
  setFree(2 ** 20 - 4096)
  const bytes = written()
  const store = new EmbeddedStore(options)
  for (const each of [before, store]) {
    assert.equal((await challengeOn(each)).status, 'unavailable')
    assert.equal(await tokenOn(each, { redeem }), 'unavailable')
    assert.equal(each.isReady(), false)
  }
  assert.ok(bytes.equals(written()))
  assert.deepEqual(told, Array(2).fill('false: the disk is full'))
  setFree(2 ** 20)
  await eventually(10_000, 'it takes writes', () => before.isReady() && store.isReady())
  assert.equal(await tokenOn(store, { redeem }), 'used')
  // Without a request, by a look.
  setFree(0)
  await eventually(10_000, 'it sees the full disk', () => !before.isReady() && !store.isReady())
  await Promise.all([before.close(), store.close()])
})

test('embedded: what the state leaves of a full disk is for changes of sites, and without it they are refused in one line', async t => {
  const [dataDir, setFree] = [tempDir(t), smallDisk(t)]
  const records = new EmbeddedRecords(dataDir)
  const { site, apiKey } = await createSite(records, { name: 'a' })
  const id = apiKeyId(apiKey)!
  setFree(100_000)
  const isFull =
    /^StoreSetupError: POWGATE_DATA_DIR: the disk of .* is full \(98304 bytes are free, \d+ are needed\), so this was not done/
  await assert.rejects(revokeApiKey(records, id), isFull)
  await assert.rejects(records.noteUses(new Map([[id, 1]])), isFull)
  assert.throws(() => new EmbeddedRecords(join(dataDir, 'new')), isFull)
  assert.equal((await records.readApiKey(id))?.revokedAt, null)
  assert.equal((await records.listSites())[0]?.siteKey, site.siteKey)
  setFree(2 ** 19)
  assert.ok((await revokeApiKey(records, id)).revokedAt)
  await records.close()
})

test('embedded: a sweep that LMDB could not commit is tried again, and the store stays ready', async t => {
  const dataDir = tempDir(t)
  const clock = { now: 1e9 }
  const changes: boolean[] = []
  const onChange = (up: boolean) => changes.push(up)
  const options = { dataDir, bytesMax: 2 ** 30, sweeps: true, clocks: clocksOf(clock), onChange }
  const store = new EmbeddedStore(options)
  await challengeOn(store)
  const state = openState(dataDir)
  assert.equal(state.windows.getKeysCount(), 1)
  const sweep = store.requests.sweep.bind(store.requests)
  let failures = 1
  store.requests.sweep = count => {
    if (failures-- > 0) throw new Error('reserved freelist had a data entry with zero-size')
    return sweep(count)
  }
  clock.now += 3_600_000
  await eventually(60_000, 'the entry goes', () => state.windows.getKeysCount() === 0)
  assert.ok(failures < 0)
  assert.deepEqual(changes, [])
  await state.file.close()
  await store.close()
})

test('embedded: a transaction that fails once is made again, and refused when it fails twice', async t => {
  const dataDir = tempDir(t)
  const state = openState(dataDir)
  const faults: unknown[] = []
  const requests = new EmbeddedRequests(state, SYSTEM_CLOCKS, error => faults.push(error))
  const transact = state.file.root.transactionSync.bind(state.file.root)
  let failures = 1
  state.file.root.transactionSync = ((action: () => unknown) =>
    transact(() => {
      const result = action()
      if (failures-- > 0) throw new Error('the disk is tired')
      return result
    })) as typeof state.file.root.transactionSync
  const ask = () => challengeOn({ requests }, { addressLimit: 2, siteLimit: 2 })
  assert.equal((await ask()).status, 'admitted')
  assert.deepEqual(faults, [])
  failures = 2
  assert.equal((await ask()).status, 'unavailable')
  assert.equal(faults.length, 1)
  // What was aborted was not charged: one of the two is left.
  assert.equal((await ask()).status, 'admitted')
  assert.equal((await ask()).status, 'limited')
  await state.file.close()
})
