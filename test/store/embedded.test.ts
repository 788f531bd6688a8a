/** The embedded store: conformance; its state over stops and crashes; its file of sites, damaged or on a full disk; who has its directory. */

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { connect, createServer, Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { deserialize, serialize } from 'node:v8'
import { loadConfig } from '../../src/config/config.ts'
import { KEPT_MS_A_PROOF, keptMs } from '../../src/domain/meters.ts'
import { apiKeyId } from '../../src/domain/site.ts'
import { createLogger } from '../../src/log/logger.ts'
import { prepareStart } from '../../src/sites/prepare-start.ts'
import { writeServiceUrl } from '../../src/sites/service-files.ts'
import { createSite, updateApiKey, updateSite } from '../../src/sites/sites.ts'
import { socketPath } from '../../src/store/embedded/data-dir.ts'
import type { ServerOptions, StoreServer } from '../../src/store/embedded/server.ts'
import { EmbeddedSites, SITES_JSONL } from '../../src/store/embedded/sites-file.ts'
import { loadState, removeSavedState, saveState } from '../../src/store/embedded/snapshot.ts'
import { deadFrom, isWindowDead, State, sweep } from '../../src/store/embedded/state.ts'
import { openSiteStore } from '../../src/store/open.ts'
import { uint32Text } from '../../src/store/wire.ts'
import { openEmbedded, serveStore } from '../harness/embedded.ts'
import { eventually } from '../harness/eventually.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { storeConformance } from './conformance.ts'
import {
  challengeOn,
  freshKey,
  freshNonce,
  meteringOf,
  nonceOn,
  openEmbeddedTwice,
  redeemable,
  redemptionOn,
  spendable,
  tokenOn,
} from './harness.ts'

/** The bound of its bytes is one that no test reaches. */
const newState = () => new State(2 ** 30)
const sitesIn = (dataDir: string) => new EmbeddedSites(dataDir, newState)

/** The sites of a new data directory, and the path of their file. */
function newSites() {
  const dataDir = temporaryDir('store')
  return { dataDir, path: join(dataDir, SITES_JSONL), file: sitesIn(dataDir) }
}

/** A file with more entries, most of them dead, is written anew (COMPACTED_ENTRIES_MIN of sites-file.ts). */
const REWRITTEN_ABOVE = 1000
/** Notes uses of keys so many times, each a line with an entry for each key. Only those of the last line are alive. */
async function noteUses(file: EmbeddedSites, ids: readonly string[], times: number, firstMs = 1) {
  for (let atMs = firstMs; atMs < firstMs + times; atMs++)
    await file.noteUses(new Map(ids.map(id => [id, atMs])))
}

storeConformance('embedded', async () => {
  const { server, ...opened } = await openEmbeddedTwice()
  const expires = async (name: string) => {
    const meter = server.state.meters.get(name)
    if (meter === undefined) return -1
    return (meter.atMs + keptMs(meter) - opened.clock.now) / 1000
  }
  return { ...opened, expires }
})

/** Runs code as a process of its own until the test ends. */
function spawned(t: TestContext, code: string, dataDir: string) {
  const args = ['--import', 'tsx', '--input-type=module', '-e', code, dataDir]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  t.after(() => child.kill('SIGKILL'))
  return child
}

/** Replaces a function of `fs` for all modules. @returns puts it back, as the end of the test does */
function mockFs(
  t: TestContext,
  name: 'rmSync' | 'linkSync' | 'renameSync' | 'writeFileSync' | 'accessSync',
  by: (...args: never) => unknown,
) {
  t.mock.method(fs, name, by)
  syncBuiltinESMExports()
  const restore = () => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  }
  t.after(restore)
  return restore
}

/**
 * A server and a client, on clocks that the test sets; both end with the test. `pass` moves both clocks on, and `sweepAll` returns
 * how many windows, marks and meters are left.
 */
async function start(t: TestContext, dataDir = temporaryDir('store'), options: Partial<ServerOptions> = {}) {
  const [wall, machine] = [{ now: Date.UTC(2026, 0, 1) }, { now: 5_000_000 }]
  const clocks = { monotonicMs: () => machine.now, wallMs: () => wall.now }
  const told: string[] = []
  const server = await serveStore(dataDir, { clocks, tell: (_, text) => told.push(text), ...options })
  const store = await openEmbedded(dataDir)
  let isOpen = true
  const stop = async (how = { saves: false }) => {
    if (isOpen) await Promise.all([store.close(), server.close(how)])
    isOpen = false
  }
  t.after(() => stop())
  const pass = (ms: number) => {
    wall.now += ms
    machine.now += ms
  }
  const sweepAll = () => {
    for (let slice = 0; slice < 20; slice++) sweep(server.state, clocks)
    const { windows, marks, meters } = server.state
    return [windows.size, marks.size, meters.size]
  }
  const spend = (nonce: string, addressKey = freshKey(), limit = 30) => {
    const limits = { addressLimit: limit, siteLimit: limit }
    const spent = { ...spendable(store, addressKey), nonce }
    return nonceOn(store, { addressKey, ...limits, spend: spent, metering: meteringOf(addressKey) })
  }
  const path = join(dataDir, SITES_JSONL)
  return { dataDir, path, server, store, told, wall, pass, sweepAll, spend, stop }
}

test('embedded: what has expired is swept, what has not stays', async t => {
  const { store, pass, sweepAll, spend } = await start(t)
  const windowsAndMarks = () => sweepAll().slice(0, 2)
  for (let index = 0; index < 300; index++) {
    await challengeOn(store, { addressKey: freshKey() })
    await spend(freshNonce(Date.now()))
    await spend(freshNonce(Date.now()), freshKey(), 1000) // above 64 a nonce has a mark of its own
  }
  assert.deepEqual(windowsAndMarks(), [900, 300])
  pass(61_000)
  assert.deepEqual(windowsAndMarks(), [300, 300], 'an address whose nonce lives is kept')
  const [addressKey, kept] = [freshKey(), freshNonce(Date.now())]
  pass(3_600_000)
  assert.equal(await spend(kept, addressKey), 'spent')
  assert.deepEqual(windowsAndMarks(), [1, 0])
  assert.equal(await spend(kept, addressKey), 'used')
  pass(8 * 86_400_000)
  assert.deepEqual(sweepAll(), [0, 0, 0])
})

test('embedded: the meter of a network whose time is over reads as a new one, also before it is swept', async t => {
  const { store, pass, spend } = await start(t)
  const addressKey = freshKey()
  await spend(freshNonce(Date.now()), addressKey)
  const usualAfter = async (ms: number) => {
    pass(ms)
    const answer = await challengeOn(store, { addressKey, metering: meteringOf(addressKey) })
    assert.ok(answer.status === 'admitted')
    return Math.round(answer.meters!.networks[0]!.usual)
  }
  assert.deepEqual([await usualAfter(KEPT_MS_A_PROOF - 1), await usualAfter(1)], [1, 0])
})

test('embedded: half full, a network that is not known gets no meter; full, all is refused until there is room', async t => {
  const small = { stateBytesMax: 60_000 }
  const { store, told, spend, pass, sweepAll } = await start(t, temporaryDir('store'), small)
  const recentAfter = async (addressKey: string) => {
    await spend(freshNonce(Date.now()), addressKey)
    const answer = await challengeOn(store, { addressKey, metering: meteringOf(addressKey) })
    return answer.status === 'admitted' && answer.meters!.networks[0]!.recent
  }
  const known = freshKey()
  assert.equal(await recentAfter(known), 1)
  // About 140 bytes each: more than half.
  for (let count = 0; count < 220; count++) await challengeOn(store, { addressKey: freshKey() })
  assert.equal(await recentAfter(freshKey()), 0)
  assert.ok(Number(await recentAfter(known)) > 1)
  for (let count = 0; count < 400 && store.isReady(); count++)
    await challengeOn(store, { addressKey: freshKey() })
  assert.equal((await challengeOn(store, { addressKey: freshKey() })).status, 'unavailable')
  assert.equal((await redemptionOn(store)).status, 'unavailable')
  const isTold = () => told.some(text => text.startsWith('the state is half full'))
  await eventually(10_000, 'the log tells', isTold)
  assert.match(store.trouble()!.line, /^POWGATE_DATA_DIR: .*its bound \(POWGATE_STATE_MAX_MB\)/)
  pass(600_000)
  sweepAll()
  await eventually(10_000, 'it is ready', () => store.isReady())
})

test('embedded: no step of the wall clock lets a token be redeemed twice', async t => {
  // The clock is set ahead, and right again a while later; or it is set back, and the token's five minutes pass.
  for (const [stepMs, backAfterMs] of [
    [600_000, 1000],
    [600_000, 300_000],
    [-600_000, 500_000],
  ] as const) {
    const { store, wall, pass, sweepAll, stop } = await start(t)
    const redeem = { ...redeemable(store), expiresAtMs: wall.now + 300_000 }
    assert.equal(await tokenOn(store, { redeem }), 'redeemed')
    wall.now += stepMs
    sweepAll()
    pass(backAfterMs)
    sweepAll()
    if (stepMs > 0) wall.now -= stepMs
    assert.equal(await tokenOn(store, { redeem }), 'used', `${stepMs} ms, for ${backAfterMs} ms`)
    await stop()
  }
})

test('embedded: an orderly stop keeps everything; after a crash nothing is read, and tokens of before are forgotten', async t => {
  const first = await start(t)
  const { dataDir } = first
  const [addressKey, redeem] = [freshKey(), redeemable(first.store)]
  await redemptionOn(first.store, { redeem })
  await challengeOn(first.store, { addressKey, siteLimit: 1 })
  await first.spend(freshNonce(Date.now()))
  await createSite(first.store.sites, { name: 'a' })
  writeServiceUrl(loadConfig({ POWGATE_DATA_DIR: dataDir }))
  await first.stop({ saves: true })

  const second = await start(t, dataDir)
  assert.equal(second.server.state.epoch, first.server.state.epoch)
  assert.equal(await tokenOn(second.store, { redeem }), 'used')
  assert.equal((await challengeOn(second.store, { addressKey, siteLimit: 1 })).status, 'limited')
  assert.deepEqual([first.told, second.told], [[], []])
  removeSavedState(dataDir) // as the service does, as soon as it serves
  await second.stop()

  const third = await start(t, dataDir)
  assert.match(third.told.join(), /^there is no saved state/)
  assert.notEqual(third.server.state.epoch, first.server.state.epoch)
  assert.equal(await tokenOn(third.store, { redeem }), 'forgotten')
  assert.equal(third.server.state.meters.size, 0)
})

test('embedded: a state that a start ended over, for want of time, memory or power, is read by no later start, which says so', async t => {
  const { dataDir, server, stop } = await start(t)
  await stop({ saves: true })
  await (await start(t, dataDir)).stop() // before it serves
  const again = await start(t, dataDir)
  assert.notEqual(again.server.state.epoch, server.state.epoch)
  assert.match(again.told.join(), /ended while it read it/)
})

test('entries of the state count their bytes; a sweep drops the dead ones, and tells when it has seen all', () => {
  const state = newState()
  const { windows } = state // an entry takes 112 bytes beside its key and value, and a meter 200
  windows.set('a', uint32Text(1))
  windows.set('bb', uint32Text(9))
  windows.set('a', `${uint32Text(1)}longer`)
  assert.deepEqual([windows.bytes, windows.delete('c')], [112 + 1 + 10 + 112 + 2 + 4, false])
  state.marks.set('r:a', uint32Text(1))
  state.meters.set('e:a', { atMs: 1, recent: 1, usual: 1 })
  assert.equal(state.bytes, windows.bytes + 112 + 3 + 4 + 200)
  const sweep = () => windows.sweep(2, value => isWindowDead(value, 1000))
  assert.deepEqual([sweep(), sweep(), [...windows.keys()]], [false, true, ['bb']])
  assert.equal(windows.bytes, 112 + 2 + 4)
})

test('a sweep does not fall behind new entries: where 6,000 a second live for a minute, two times the living are held at most', () => {
  const [state, scale] = [newState(), 20] // a twentieth of the entries, and of those that a sweep looks at, to save time
  const clock = { now: 0 }
  const clocks = { monotonicMs: () => clock.now, wallMs: () => clock.now }
  let added = 0
  for (let nextSweep = 0; clock.now < 600_000; clock.now += 5) {
    const due = (clock.now * 6) / scale // six a millisecond
    for (; added < due; added++) state.windows.set(`l:${added}`, deadFrom(clock.now + 60_000))
    if (clock.now >= nextSweep) nextSweep = clock.now + sweep(state, clocks, 500 / scale)
  }
  const living = (6000 * 60) / scale
  assert.ok(state.windows.size < 2 * living, `${state.windows.size}`)
})

test('embedded: of a state of before a reboot only what is usual is read, of another version or a damaged one nothing', async () => {
  const dataDir = temporaryDir('store')
  const state = newState()
  state.windows.set('l:a', 'record')
  state.meters.set('e:network', { atMs: 1, recent: 2, usual: 3 })
  saveState(dataDir, state, 'boot 1')
  const loaded = (bootId: string) => {
    const found = newState()
    const unread = loadState(dataDir, found, { bootId })
    return [found.epoch === state.epoch, found.windows.size, found.meters.size, unread ?? '']
  }
  assert.deepEqual(loaded('boot 1'), [true, 1, 1, ''])
  const [isSameEpoch, windows, meters, unread] = loaded('boot 2')
  assert.deepEqual([isSameEpoch, windows, meters], [false, 0, 1])
  assert.match(String(unread), /before a reboot/)
  saveState(dataDir, state, '')
  assert.equal(loaded('')[0], false, 'where the machine tells no boot id, no state is of this boot')
  saveState(dataDir, state, 'boot 1')
  const bytes = fs.readFileSync(join(dataDir, 'state'))
  const change = (fields: object) =>
    fs.writeFileSync(join(dataDir, 'state'), serialize({ ...deserialize(bytes), ...fields }))
  change({ savedAtMs: Date.now() - 86_400_000 })
  assert.match(String(loaded('boot 1')[3]), /or old/)
  change({ layout: -1 })
  assert.match(String(loaded('boot 1')[3]), /another version/)
  fs.writeFileSync(join(dataDir, 'state'), bytes.subarray(0, bytes.length - 9))
  assert.match(String(loaded('boot 1')[3]), /damaged/)
})

test('embedded: a power loss at any byte of the last change loses that change alone, and says so', async () => {
  const { dataDir, path, file } = newSites()
  const { site } = await createSite(file, { name: 'first' })
  const before = fs.statSync(path).size
  await updateSite(file, site.siteKey, { name: 'second' })
  await file.closeFile()
  const whole = fs.readFileSync(path)
  for (let length = before; length <= whole.length; length++) {
    fs.writeFileSync(path, whole.subarray(0, length))
    const found = sitesIn(dataDir)
    const isWhole = length >= whole.length - 1 // without the line's end too, as some editors leave it
    assert.equal((await found.readSite(site.siteKey))?.name, isWhole ? 'second' : 'first', `${length}`)
    assert.equal(found.droppedLine === undefined, isWhole || length === before)
    if (found.droppedLine !== undefined)
      assert.ok(fs.readFileSync(`${path}.dropped`).includes(whole.subarray(before, length)), `${length}`)
    await updateSite(found, site.siteKey, { name: 'third' })
    await found.closeFile()
    const again = sitesIn(dataDir)
    assert.deepEqual([again.droppedLine, (await again.readSite(site.siteKey))?.name], [undefined, 'third'])
    await again.closeFile()
  }
})

test('embedded: a line with 150,000 audit entries, more than a call takes arguments, is read', async () => {
  const dataDir = temporaryDir('store')
  fs.writeFileSync(join(dataDir, SITES_JSONL), JSON.stringify({ audit: Array(150_000).fill({ at: 1 }) }))
  const file = sitesIn(dataDir)
  assert.equal((await file.readAudit({ limit: 150_001 })).length, 150_000)
  await file.closeFile()
})

test('embedded: audit entries that are dropped leave the file at once, and with them the values that they replaced', async () => {
  const { path, file } = newSites()
  const { site } = await createSite(file, { name: 'older' })
  await updateSite(file, site.siteKey, { name: 'newer' })
  fs.mkdirSync(`${path}.new`) // so that the file cannot be written anew
  await file.dropAudit(Date.now() + 1)
  assert.match(fs.readFileSync(path, 'utf8'), /older/)
  fs.rmdirSync(`${path}.new`)
  await file.noteUses(new Map([['id', 1]])) // the next write tries again
  assert.doesNotMatch(fs.readFileSync(path, 'utf8'), /older/)
  await updateSite(file, site.siteKey, { name: 'newest' })
  await file.dropAudit(Date.now() + 1)
  assert.doesNotMatch(fs.readFileSync(path, 'utf8'), /newer/)
  await file.closeFile()
})

test('embedded: a link in place of a file is not followed, else a command of root would write what it leads to', async t => {
  const { dataDir, path, file } = newSites()
  await createSite(file, { name: 'first' })
  const foreign = join(dataDir, 'foreign')
  fs.writeFileSync(foreign, '')
  for (const name of [path, join(dataDir, 'state')]) fs.symlinkSync(foreign, `${name}.new`)
  const restore = mockFs(t, 'rmSync', () => {}) // as if the link came after it
  await noteUses(file, ['id'], REWRITTEN_ABOVE + 1)
  assert.throws(() => saveState(dataDir, newState()), /EEXIST/)
  restore()
  assert.equal(fs.readFileSync(foreign, 'utf8'), '')
  await file.closeFile()
  for (const link of [`${path}.dropped`, path]) {
    fs.writeFileSync(path, `${fs.readFileSync(path, 'utf8')}{"torn`)
    fs.rmSync(link, { force: true })
    fs.symlinkSync(foreign, link)
    assert.throws(() => sitesIn(dataDir), new RegExp(`${link}: it is a link`))
    assert.equal(fs.readFileSync(foreign, 'utf8'), '')
  }
})

const SITE_PROBLEM = /\w of a site: expected /
/** What to replace in a good line of a site, and by what. */
const SITE_MISTAKES = [
  ['"name":"a"', '"name":1'],
  ['"active":true', '"active":"false"'],
  ['"origins":[]', '"origins":"a"'],
  ['"origins":[]', '"origins":["https://a.example",1]'],
  ['"origins":[]', '"origins":["a"]'],
  ['"difficulty":', '"dificulty":'],
  ['"base":18', '"base":"18"'],
  ['"base":18', '"base":12'],
  ['"base":18', '"base":30'], // above the maximum
  ['"max":28', '"max":2.5'],
  ['"threshold":0.5', '"threshold":"high"'],
  ['"networks":[]', '"networks":["nonsense"]'],
  ['"createdAt":', '"created":'],
  ...['"raise":{"bits":"3"}', '"raise":null', '"limits":"none"', '"deletedAt":null'].map(
    part => ['"origins":[]', `"origins":[],${part}`] as const,
  ),
  // These would shift the keys of other redemptions in a batch, so that one token is redeemed twice.
  ...[0, -5, 64.5, 2 ** 24, '"many"'].map(
    limit => ['"origins":[]', `"limits":{"redeem":${limit}},"origins":[]`] as const,
  ),
] as const
const KEY_PROBLEM = /siteKey, secretSha256, createdAt, revokedAt or expiresAt of an API key/
const KEY_MISTAKES = [
  [/"siteKey":("site_\w+","createdAt":\d+,"expiresAt")/, '"site":$1'],
  ['"secretSha256":', '"secret":'],
  [/"createdAt":\d+,"expiresAt"/, '"expiresAt"'],
  ['"revokedAt":null', '"revokedAt":"2026-01-01"'],
  ['"expiresAt":null', '"expiresAt":"2026-01-01"'],
] as const

test('embedded: a wrong line of the sites that is not the last stops the start, with its number and what is wrong', async () => {
  const { dataDir, path, file } = newSites()
  await createSite(file, { name: 'a', minScore: 1e-7 }) // a good line, though JSON writes 1e-7
  await file.closeFile()
  const good = fs.readFileSync(path, 'utf8')
  for (const [wrong, what] of [
    ['{"changes": [[', /line \d+: .*JSON/],
    ...['[]', 'null', '5'].map(line => [line, /it is no JSON object/] as const),
    ['{"other": 1}', /"other" is no part that this version knows/],
    ['{"changes": [[1, {}]]}', /a change is no site and no API key/],
    ['{"changes": [["1", {"site": {"siteKey": "s"}}]]}', /a change is no site and no API key/],
    ['{"changes": [[1, {"site": {"siteKey": "s"}}]]}', SITE_PROBLEM],
    ...SITE_MISTAKES.map(([from, to]) => [good.trim().replace(from, to), SITE_PROBLEM] as const),
    ['{"changes": [[1, {"apiKey": {"id": "k"}}]]}', KEY_PROBLEM],
    ...KEY_MISTAKES.map(([from, to]) => [good.trim().replace(from, to), KEY_PROBLEM] as const),
    ...['5', '[1]', '[null]'].map(audit => [`{"audit": ${audit}}`, /audit is no list of entries/] as const),
    ['{"auditFrom": "2026"}', /auditFrom or one of uses is no time/],
    ['{"uses": {"k": "today"}}', /auditFrom or one of uses is no time/],
  ] as const) {
    fs.writeFileSync(path, `${good}${wrong}\n${good}`)
    assert.throws(() => sitesIn(dataDir), { name: 'OperatorError', message: what }, wrong)
    const line = good.split('\n').length
    assert.throws(() => sitesIn(dataDir), { message: new RegExp(`line ${line}: `) })
  }
})

/** Ways to damage the file of sites or the state. */
const DAMAGES: Readonly<Record<string, (path: string) => unknown>> = {
  'cut to 0 bytes': path => fs.truncateSync(path, 0),
  gone: path => fs.rmSync(path),
  'with last uses alone': path => fs.writeFileSync(path, '{"uses":{"key00001":1}}\n'),
  'cut within its first line': path => fs.truncateSync(path, 100),
  zeros: path => fs.writeFileSync(path, Buffer.alloc(1000)),
  'a text': path => fs.writeFileSync(path, 'no such thing\n'.repeat(1000)),
  'a directory': path => [fs.rmSync(path), fs.mkdirSync(path)],
  'without the quotation mark after a name': path => {
    const text = fs.readFileSync(path, 'latin1')
    const at = text.indexOf('"', Math.floor(text.length / 2))
    fs.writeFileSync(path, text.slice(0, at) + text.slice(at + 1), 'latin1')
  },
}

const SECRET = 'a secret of more than thirty-two characters'
/** Damaged secrets. One that is gone is made anew. */
const NO_SECRETS = { empty: '', cut: 'abcdef', garbage: Buffer.alloc(64, 0xfe) }

test('embedded: a damaged file of a data directory: of sites or secret, nothing starts, and one line says why; of the state, no token is redeemed again', async () => {
  const dataDir = temporaryDir('store')
  const [first, store] = [await serveStore(dataDir), await openEmbedded(dataDir)]
  for (const name of ['a', 'b', 'c']) await createSite(store.sites, { name })
  const redeem = redeemable(store)
  assert.equal(await tokenOn(store, { redeem }), 'redeemed')
  const sites = await store.sites.listSites()
  await store.close()
  await first.close({ saves: true })
  const config = loadConfig({ POWGATE_DATA_DIR: dataDir })
  fs.writeFileSync(join(dataDir, 'secret'), SECRET)
  writeServiceUrl(config)
  const copy = temporaryDir('copy')
  fs.cpSync(dataDir, copy, { recursive: true })

  /** Starts on the copy with one file damaged. @returns why it refuses, or what becomes of the token */
  const startWith = async (file: string, damage: (path: string) => unknown): Promise<string> => {
    fs.rmSync(dataDir, { recursive: true })
    fs.cpSync(copy, dataDir, { recursive: true })
    damage(join(dataDir, file))
    let server: StoreServer | undefined
    const start = async () => void (server = await serveStore(dataDir))
    try {
      await prepareStart(config, createLogger('silent'), { gauges: {} }, { start })
      const store = await openEmbedded(dataDir)
      assert.deepEqual(await store.sites.listSites(), sites)
      return await tokenOn(store, { redeem }).finally(() => store.close())
    } catch (error) {
      return (error as Error).message
    } finally {
      await server?.close({ saves: false })
    }
  }
  for (const [about, damage] of Object.entries(DAMAGES)) {
    const why = await startWith(SITES_JSONL, damage)
    assert.match(why, new RegExp(`^POWGATE_DATA_DIR: .*${dataDir}.+$`), `the sites are ${about}`)
    assert.equal(await startWith('state', damage), 'forgotten', `the state is ${about}`)
  }
  const noSecret = new RegExp(`^POWGATE_DATA_DIR: .*${dataDir}.+Put back a copy`)
  for (const [about, content] of Object.entries(NO_SECRETS)) {
    const why = await startWith('secret', path => fs.writeFileSync(path, content))
    assert.match(why, noSecret, `the secret is ${about}`)
  }
  const awaitsMount = await startWith('secret', path => [fs.rmSync(path), fs.symlinkSync('/none', path)])
  assert.match(awaitsMount, noSecret, 'a link is not replaced by a new secret')
  const why = await startWith('secret', path => [fs.rmSync(path), fs.mkdirSync(path)])
  assert.match(why, /cannot use the secret in .*: it is a directory$/)
  assert.equal(await startWith('state', () => {}), 'used', 'the copy put back')
})

test('embedded: the sites are written anew once half of the file is dead, and are the same', async () => {
  const { dataDir, path, file } = newSites()
  const { site, apiKey } = await createSite(file, { name: 'a' })
  const id = apiKeyId(apiKey)!
  const ids = [id, ...Array(99).keys()].map(String)
  await noteUses(file, ids, 300)
  const { size } = fs.statSync(path)
  assert.ok(size < 20_000, `${size} bytes`)
  const contentOf = (found: EmbeddedSites) => {
    const records = [found.listSites(), found.listApiKeys(), found.readAudit({ limit: 100 })] as const
    return Promise.all([...records, found.readUses([id]), found.changesSince(0)])
  }
  const expected = await contentOf(file)
  await file.closeFile()
  const again = sitesIn(dataDir)
  assert.deepEqual(await contentOf(again), expected)
  await updateSite(again, site.siteKey, { name: 'b' })
  assert.equal((await again.changesSince(undefined)).revision, 3)
  await again.closeFile()
})

/** From now on a write of so many bytes or more writes 20 of them and fails. @returns what ends that */
function fillDisk(t: TestContext, bytesMin = 0): () => void {
  const write = fs.writeFileSync
  return mockFs(t, 'writeFileSync', (to: number | string, data: Buffer) => {
    if (data.length < bytesMin) return write(to, data)
    write(to, data.subarray(0, 20))
    throw Object.assign(new Error('write'), { code: 'ENOSPC' })
  })
}

test('embedded: a change that cannot be written is refused in one line, and nothing of it stays', async t => {
  const { path, file } = newSites()
  const { apiKey } = await createSite(file, { name: 'a' })
  const id = apiKeyId(apiKey)!
  const bytes = fs.readFileSync(path)
  const makeRoom = fillDisk(t)
  const isFull = /^OperatorError: POWGATE_DATA_DIR: cannot write .*, so this was not done: the disk is full,/
  await assert.rejects(updateApiKey(file, id, { revokedAt: Date.now() }), isFull)
  await assert.rejects(file.noteUses(new Map([[id, 1]])), isFull)
  makeRoom()
  assert.deepEqual(fs.readFileSync(path), bytes)
  assert.equal((await file.readApiKey(id))?.revokedAt, null)
  assert.ok((await updateApiKey(file, id, { revokedAt: Date.now() })).revokedAt)
  await file.closeFile()
})

test('embedded: a change that is written, but whose answer is lost, is not told to have failed', async () => {
  const dataDir = temporaryDir('store')
  const [server, store] = [await serveStore(dataDir), await openEmbedded(dataDir)]
  const commit = server.sites.commit.bind(server.sites)
  server.sites.commit = (...args) =>
    Promise.all([commit(...args), server.close({ saves: false })]).then(() => true)
  await assert.rejects(createSite(store.sites, { name: 'a' }), /ended .* not known whether this was done/)
  await store.close()
  assert.match(fs.readFileSync(join(dataDir, SITES_JSONL), 'utf8'), /"name":"a"/)
})

test('embedded: while what a worker writes waits for the disk, its batches are answered', async t => {
  const { server, store } = await start(t)
  for (const [name, argument] of [['noteUses', new Map([['id', 1]])] as const, ['dropAudit', 1] as const]) {
    let release = () => {}
    server.sites[name] = () => new Promise<void>(done => (release = done))
    const written = store.sites[name](argument as never)
    assert.equal((await challengeOn(store)).status, 'admitted', name)
    release()
    await written
  }
})

test('embedded: a full disk while the sites are written anew: nothing is left of it, and changes go on', async t => {
  const { dataDir, path, file } = newSites()
  const { apiKey } = await createSite(file, { name: 'a' })
  const id = apiKeyId(apiKey)!
  await noteUses(file, [id], REWRITTEN_ABOVE - 5)
  const openFiles = () => fs.readdirSync('/proc/self/fd').length
  const before = openFiles()
  const makeRoom = fillDisk(t, 1000) // a change is shorter, and still written
  await noteUses(file, [id], 10, REWRITTEN_ABOVE)
  makeRoom()
  assert.deepEqual(fs.readdirSync(dataDir), [SITES_JSONL])
  assert.equal(openFiles(), before)
  await file.noteUses(new Map([[id, 2000]]))
  assert.ok(fs.readFileSync(path, 'utf8').split('\n').length < 100)
  assert.deepEqual(await file.readUses([id]), new Map([[id, 2000]]))
  await file.closeFile()
})

test('embedded: a full disk while the state is saved: the part that was written gives its room back', async t => {
  const { dataDir, told, stop } = await start(t)
  const makeRoom = fillDisk(t)
  await stop({ saves: true })
  makeRoom()
  assert.deepEqual([fs.readdirSync(dataDir), told], [[SITES_JSONL], []]) // nothing was issued
})

test('embedded: after root has written the sites anew, they still belong to the user of the service', async () => {
  const { path, file } = newSites()
  if (process.getuid!() === 0) fs.chownSync(path, 4242, 4243) // only root can
  const { ino, uid, gid } = fs.statSync(path)
  await noteUses(file, ['id'], REWRITTEN_ABOVE + 1)
  await file.closeFile()
  const written = fs.statSync(path)
  assert.notEqual(written.ino, ino)
  assert.deepEqual([written.uid, written.gid, written.mode & 0o777], [uid, gid, 0o600])
})

test('embedded: what a command of root makes belongs to the user of the directory', async t => {
  const dataDir = temporaryDir('store')
  if (process.getuid!() === 0) fs.chownSync(dataDir, 4242, 4243)
  const { stop } = await start(t, dataDir)
  const withOwner = (name: string) => `${name} ${fs.statSync(join(dataDir, name)).uid}`
  const owners = () => fs.readdirSync(dataDir).map(withOwner).join()
  const { uid } = fs.statSync(dataDir)
  assert.equal(owners(), `sites.jsonl ${uid},store ${uid}`)
  await stop({ saves: true })
  assert.equal(owners(), `sites.jsonl ${uid},state ${uid}`)
})

test('embedded: a file of sites that somebody else writes while it serves: no change is told to be done, and the log says why', async t => {
  const { path, store, told, stop } = await start(t)
  const { site } = await createSite(store.sites, { name: 'a' })
  const backup = fs.readFileSync(path)
  await updateSite(store.sites, site.siteKey, { name: 'b' })
  fs.writeFileSync(path, backup)
  await assert.rejects(updateSite(store.sites, site.siteKey, { name: 'c' }), /written by somebody else/)
  await eventually(10_000, 'it is not ready', () => !store.isReady())
  assert.match(told.join(), /sites\.jsonl was replaced, or written by somebody else, under the running/)
  await stop({ saves: true })
  assert.deepEqual(fs.readFileSync(path), backup)
})

test('embedded: a file of sites that was removed while it serves: the log has the command that puts it back', async t => {
  const { path, store, told } = await start(t)
  await createSite(store.sites, { name: 'a' })
  const before = fs.readFileSync(path)
  fs.rmSync(path)
  await eventually(10_000, 'it is not ready', () => !store.isReady())
  const [, command = ''] = /was removed under the running service: put it back \((.*)\)/.exec(told.join())!
  execFileSync('sh', ['-c', command])
  assert.deepEqual(fs.readFileSync(path), before)
})

test('embedded: where the file system has become read-only, a command still asks the store that serves', async t => {
  const { dataDir, stop } = await start(t)
  mockFs(t, 'accessSync', () => {
    throw Object.assign(new Error('access'), { code: 'EROFS' })
  })
  const config = loadConfig({ POWGATE_DATA_DIR: dataDir })
  const sites = await openSiteStore(config)
  assert.deepEqual(await sites.listSites(), [])
  await Promise.all([sites.close(), stop()])
  await assert.rejects(openSiteStore(config), /cannot use the directory .*: the file system is read-only$/)
})

test('embedded: an owner that does not answer, or closes each connection and does not end, is told, and not waited for without end', async () => {
  for (const [serve, waitMs, who] of [
    [() => {}, 2500, 'a process that does not answer'],
    [(socket: Socket) => void socket.destroy(), 200, 'a process that does not end'],
  ] as const) {
    const dataDir = temporaryDir('store')
    const owner = createServer(serve).listen(socketPath(dataDir))
    await once(owner, 'listening')
    const waited: string[] = []
    const served = serveStore(dataDir, { onWaiting: who => waited.push(who), waitMs })
    await assert.rejects(served, new RegExp(`is in use by ${who}: end that first`))
    assert.equal(waited.join(), waitMs === 2500 ? who : '')
    owner.close()
  }
})

test('embedded: an owner that dies when it is asked to leave is no reason not to start', async t => {
  const dataDir = temporaryDir('store')
  const write = Socket.prototype.write
  let isFirst = true
  t.mock.method(Socket.prototype, 'write', function (this: Socket, ...args: Parameters<typeof write>) {
    if (!isFirst || args[0] !== '*1\r\n$5\r\nLEAVE\r\n') return write.apply(this, args)
    isFirst = false
    this.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
    return false
  } as typeof write)
  const dying = createServer(socket => socket.destroy()).listen(socketPath(dataDir))
  await once(dying, 'listening')
  const next = serveStore(dataDir)
  await eventually(10_000, 'it has asked', () => !isFirst)
  dying.close()
  await (await next).close({ saves: false })
})

test('embedded: who comes while the last change is written is not answered, for the state is being saved', async t => {
  const { dataDir, server, stop } = await start(t)
  const path = socketPath(dataDir)
  let release = () => {}
  const close = server.sites.closeFile.bind(server.sites)
  server.sites.closeFile = async () => {
    await new Promise<void>(done => (release = done))
    await close()
  }
  const closing = stop({ saves: true })
  const late = connect(path, () => late.write('*1\r\n$4\r\nPING\r\n'))
  const answers: string[] = []
  late.on('data', bytes => answers.push(bytes.toString())).on('error', () => {})
  await new Promise(done => late.on('data', done).on('close', done))
  late.destroy()
  release()
  await closing
  assert.deepEqual(answers, [])
})

test('embedded: while a command is the store, for want of a service, a token of before is not redeemed; the next service redeems it', async t => {
  const dataDir = temporaryDir('store')
  const first = await start(t, dataDir)
  const redeem = redeemable(first.store)
  await first.stop({ saves: true })
  const reads = t.mock.method(fs, 'readFileSync').mock
  syncBuiltinESMExports()
  const command = await openSiteStore(loadConfig({ POWGATE_DATA_DIR: dataDir }))
  await command.listSites()
  const isSavedStateRead = reads.calls.some(({ arguments: [path] }) => path === join(dataDir, 'state'))
  reads.restore()
  syncBuiltinESMExports()
  const worker = await openEmbedded(dataDir)
  assert.equal(await tokenOn(worker, { redeem }), 'forgotten')
  await worker.close()
  await command.close()
  assert.equal(isSavedStateRead, false, 'it may be large, and a command needs the sites alone')
  const again = await start(t, dataDir)
  assert.equal(await tokenOn(again.store, { redeem }), 'redeemed')
})

test('embedded: the primary follows changes of sites, lists none, and does not become the store where that has died', async t => {
  const dataDir = temporaryDir('store')
  const server = await serveStore(dataDir)
  const { site } = await createSite(server.sites, { name: 'first' })
  const listed = t.mock.method(server.sites, 'listSites').mock
  const code = `
    import { loadConfig } from '${new URL('../../src/config/config.ts', import.meta.url)}'
    import { SiteMemory } from '${new URL('../../src/process/site-memory.ts', import.meta.url)}'
    const memory = new SiteMemory({})
    await memory.reconnect(loadConfig({ POWGATE_DATA_DIR: process.argv[1] }))
    const tell = async () => process.send((await memory.records()).sites.map(({ name }) => name))
    for (;;) await tell().then(() => new Promise(done => setTimeout(done, 100)))`
  const primary = spawned(t, code, dataDir)
  const name = async () => String((await once(primary, 'message'))[0])
  await eventually(60_000, 'the name', async () => (await name()) === 'first')
  await updateSite(server.sites, site.siteKey, { name: 'second' })
  await eventually(60_000, 'the new name', async () => (await name()) === 'second')
  assert.equal(listed.callCount(), 0)
  await server.close({ saves: false })
  fs.rmSync(join(dataDir, SITES_JSONL))
  for (let count = 0; count < 3; count++) assert.equal(await name(), 'second')
  assert.deepEqual(fs.readdirSync(dataDir), [])
})

test('embedded: who opens a directory waits until another has left; one that has crashed is replaced', async t => {
  const dataDir = temporaryDir('store')
  const waited: string[] = []
  const first = await serveStore(dataDir, { who: 'the service of process 1' })
  const second = serveStore(dataDir, { onWaiting: who => waited.push(who) })
  await eventually(10_000, 'it waits', () => waited.join() === 'the service of process 1')
  await first.close({ saves: false })
  await (await second).close({ saves: false })

  const code = `
    import { serveStore } from '${new URL('../harness/embedded.ts', import.meta.url)}'
    await serveStore(process.argv[1]); process.send('serves')`
  const crashed = spawned(t, code, dataDir)
  await once(crashed, 'message')
  crashed.kill('SIGKILL')
  await once(crashed, 'exit')
  // Two at once: one of them has it.
  const results = await Promise.allSettled([1, 2].map(() => serveStore(dataDir, { waitMs: 500 })))
  const served = results.filter(({ status }) => status === 'fulfilled')
  assert.equal(served.length, 1)
  await (served[0] as PromiseFulfilledResult<StoreServer>).value.close({ saves: false })
})

test('embedded: a directory that was replaced under the service: nothing is answered, and the log says why', async t => {
  const { dataDir, store, told, stop } = await start(t, fs.mkdtempSync(join(temporaryDir('store'), 'data'))) // its parent is the test's, to rename in
  const { site } = await createSite(store.sites, { name: 'a' })
  fs.renameSync(dataDir, `${dataDir}.old`)
  fs.mkdirSync(dataDir)
  const change = updateSite(store.sites, site.siteKey, { name: 'b' })
  await assert.rejects(change, /written by somebody else|moved away/)
  await eventually(10_000, 'it is not ready', () => !store.isReady())
  assert.match(
    store.trouble()!.line,
    /was moved away, or .* under the running service: put it back, or .* --from-service.*\), then restart it/,
  )
  await stop({ saves: true })
  assert.match(told.join(), /moved away.*the state is not saved/)
  assert.deepEqual(fs.readdirSync(dataDir), [])
})

/** A directory in which the path of the socket has the most bytes that a socket's may have. */
function longestDir(): string {
  const parent = temporaryDir('store')
  const path = join(parent, 'd'.repeat(107 - '/store'.length - parent.length - 1))
  fs.mkdirSync(path)
  return path
}

test('embedded: the longest path that a socket may have serves, a longer one is one line', async () => {
  const longest = longestDir()
  await (await serveStore(longest)).close({ saves: false })
  assert.deepEqual(fs.readdirSync(longest), [SITES_JSONL])
  assert.throws(() => socketPath(`${longest}d`), /^OperatorError: POWGATE_DATA_DIR: .* longer than the 107/)
})

test('embedded: a service that takes the name of a dead socket, just before another removes that, keeps it', async t => {
  const dataDir = longestDir() // in which the name for a socket that is put aside must fit, too
  const [dead, alive] = [join(dataDir, '1dead'), join(dataDir, '2live')]
  const crashed = createServer().listen(dead, () => fs.linkSync(dead, socketPath(dataDir)))
  const another = createServer(peer => peer.on('data', () => peer.end('-ERR X\r\n'))).listen(alive)
  await Promise.all([once(crashed, 'listening'), once(another, 'listening')])
  crashed.close() // the link stays, and nobody listens
  const rename = fs.renameSync
  mockFs(t, 'renameSync', (from: string, to: string) => {
    fs.rmSync(from)
    fs.linkSync(alive, from) // as if another service took the name just now
    rename(from, to)
  })
  await assert.rejects(serveStore(dataDir, { waitMs: 200 }), /is in use by X: end that first/)
  another.close()
})

test('embedded: whoever speaks something else to the socket is cut off, and others go on', async t => {
  const { dataDir, store } = await start(t)
  for (const text of ['GET /\r\n', '*1\r\n$x', '*99999999999\r\n', '*2\r\n$7\r\nEVALSHA\r\n$1\r\nx\r\n']) {
    const socket = connect(socketPath(dataDir), () => socket.write(text))
    socket.on('error', () => {})
    const [reply] = await Promise.race([once(socket, 'close'), once(socket, 'data')])
    if (Buffer.isBuffer(reply)) assert.match(reply.toString(), /^-ERR /)
    socket.destroy()
  }
  assert.equal((await challengeOn(store)).status, 'admitted')
})

test('embedded: calls that come in pieces, and many in one, are answered in order', async t => {
  const { dataDir } = await start(t)
  const socket = connect(socketPath(dataDir))
  t.after(() => socket.destroy())
  const ping = '*1\r\n$4\r\nPING\r\n'
  const calls = Buffer.from(`${ping}*2\r\n$5\r\nSITES\r\n$13\r\n["listSites"]\r\n${ping}`)
  let replies = ''
  socket.on('data', reply => (replies += reply))
  for (const byte of calls) {
    socket.write(Buffer.from([byte]))
    await new Promise(resolve => setImmediate(resolve))
  }
  socket.write(Buffer.concat([calls, calls]))
  const repliesOnce = '+OK\r\n$12\r\n{"value":[]}\r\n+OK\r\n'
  await eventually(10_000, 'all replies', () => replies.length >= 3 * repliesOnce.length)
  assert.equal(replies, repliesOnce.repeat(3))
})
