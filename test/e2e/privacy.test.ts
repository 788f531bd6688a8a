/** After real visits a visitor's address is in no file, dump, log, metric or answer, in none of its spellings (docs/security.md). */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  type Address,
  formatAddress,
  formatNetwork,
  isV4,
  parseAddress,
} from '../../src/addresses/address.ts'
import { Powgate } from '../cli/cli-process.ts'
import { openBrowser } from '../harness/browser.ts'
import { PageServer } from '../harness/browser-pages.ts'
import { FaultyProxy } from '../harness/browser-proxy.ts'
import { Client, HONEST_ENVIRONMENT } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { call, listenToAnswers } from '../harness/http.ts'
import { startObserved } from '../harness/metrics.ts'
import { RedisServer } from '../harness/redis.ts'
import { EASY, STORE_KINDS, type TestService, type TestSite } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import { closePage, formPage, visit } from '../harness/widget.ts'

const BY_BROWSER = '192.0.2.211'
/** Nothing else here has these addresses, so wherever one is found, a visitor left it. */
const ADDRESSES = ['203.0.113.177', '2001:db8:a1b2:c3d4:e5f6:1789:abcd:ef12', BY_BROWSER].map(
  text => parseAddress(text)!,
)
const BLOCKED = '198.51.100.77'

/** As text, as hexadecimal, as bytes, and as base64 of both; of IPv6 the network that one household has, too. */
function spellings(address: Address): [name: string, bytes: Buffer][] {
  const [start, prefixes] = isV4(address) ? [12, [128]] : [0, [48, 64, 128]]
  const found: [string, Buffer][] = [['text', Buffer.from(formatAddress(address))]]
  for (const bits of prefixes) {
    const bytes = Buffer.from(address.slice(start, bits / 8), 'latin1')
    const hex = bytes.toString('hex')
    const add = (name: string, content: Buffer) => found.push([`${name} of ${bits} bits`, content])
    add('bytes', bytes)
    for (const text of [hex, hex.toUpperCase()]) add(`hexadecimal ${text}`, Buffer.from(text))
    // The last character depends on what follows the address.
    add('base64', Buffer.from(bytes.toString('base64url').slice(0, -1)))
  }
  return found
}

/** Which addresses a file or text has, and in which spellings. */
const addressesIn = (content: Buffer) =>
  ADDRESSES.flatMap(address =>
    spellings(address)
      .filter(([, bytes]) => content.includes(bytes))
      .map(([name]) => `${formatAddress(address)} as ${name}`),
  )

test('an address is found in each of its spellings', () => {
  for (const written of words('203.0.113.177 cb0071b1 CB0071B1 \xcb\0q\xb1 ywBxsQ 20010db8a1b2c3d4'))
    assert.notEqual(addressesIn(Buffer.from(`a${written}b`, 'latin1')).length, 0, written)
})

function filesBelow(dir: string): [name: string, content: Buffer][] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map(name => join(dir, name))
    .filter(path => statSync(path).isFile())
    .map(path => [path, readFileSync(path)])
}

/** Everything that the visits of an address leave: a pass, a failure, a limit, refusals, an invented nonce, redemptions. */
async function leaveTraces(client: Client, site: TestSite, address: string) {
  const headers = { 'X-Forwarded-For': address }
  const token = await client.token(site.siteKey, { headers })
  const bot = { environment: { ...HONEST_ENVIRONMENT, webdriver: true } }
  await client.verify(site.siteKey, await client.solved(site.siteKey, { headers }, bot), { headers })
  await client.verify(site.siteKey, '{}', { headers })
  const invented = { ...(await client.solved(site.siteKey, { headers })), nonce: '0'.repeat(32) }
  await client.verify(site.siteKey, invented, { headers })
  for (let time = 0; time < 30; time++) await client.challenge(site.siteKey, { headers })
  await client.challenge('site_0000000000000000000000', { headers })
  assert.equal((await client.verifyToken(site.apiKey, { token, expectedIp: '198.51.100.1' })).status, 400)
  const redeemed = await client.verifyToken(site.apiKey, { token, expectedIp: address }, { headers })
  assert.equal(redeemed.json.ip, address)
  for (const key of [site.apiKey, site.apiKey.replace(/.{43}$/, 'A'.repeat(43))])
    await client.verifyToken(key, { token: 'x' }, { headers })
}

/** A visitor who fills in a form, whose backend redeems the token. */
async function visitInBrowser(service: TestService, site: TestSite): Promise<void> {
  const [gateway, pages] = await Promise.all([FaultyProxy.start(service.port), PageServer.start()])
  gateway.clientAddress = BY_BROWSER
  const script = `<script src="${gateway.origin()}/widget.js"></script>`
  pages.add('/form', formPage(`site-key="${site.siteKey}" auto="focus"`, { script }))
  const { page } = await visit(await openBrowser(), `${pages.origin()}/form`)
  await page.getByLabel('Name').fill('Ada')
  await page.getByRole('button', { name: 'Send' }).click()
  const fields = await eventually(60_000, 'the form arrives', () => pages.forms[0])
  const redemption = { token: fields.get('powgate-token'), expectedIp: BY_BROWSER }
  assert.equal((await new Client(service.url).verifyToken(site.apiKey, redemption)).status, 200)
  await closePage(page)
}

const PRIVACY = readFileSync(new URL('../../docs/privacy.md', import.meta.url), 'utf8')
const [MINUTE, WEEK] = [60, 7 * 86_400]
/** The kinds of records (letters of src/store/client/requests.ts): a row of docs/privacy.md, and the seconds they are kept at most. */
const KEPT: Readonly<Record<string, readonly [row: string, seconds: number]>> = {
  l: ['keyed tag of the address, with times and nonces', 5 * MINUTE],
  c: ['keyed tag of the address, with times and nonces', 5 * MINUTE],
  e: ['keyed tag of the network, with counts', WEEK],
  k: ["times of your backend's requests", MINUTE],
  r: ['record of a redemption', 8 * MINUTE],
}

/**
 * The kinds of windows in Redis: `l` of a visitor or `c` of a backend, and then what src/domain/address-tags.ts adds to an address,
 * `n` for a known network, `s` for a site's own limit, `r` for what was refused, `j` for junk.
 */
async function windowsIn(redis: RedisServer): Promise<string> {
  const names = (await redis.ask('keys', 'pg:*:[lc]:*')) as string[]
  // A tag of ten characters, the rest of the address, and a site's key are left out.
  const kinds = names.map(name => name.replace(/^.*:([lc]):.{10}[0-9a-f]*([ns]?)(?:site_.{22})?/, '$1$2'))
  return [...new Set(kinds)].sort().join(' ')
}

async function assertEnds(redis: RedisServer): Promise<void> {
  const kinds = new Set<string>()
  for (const key of (await redis.ask('keys', '*')) as string[]) {
    const [, shard, kind] = /^pg:\{(.*?)\}:([a-z]+)/.exec(key)!
    const isOfShard = ['epoch', 'look', 'count'].includes(kind!) // by which the store notices that records were lost
    if (shard === 'sites' || isOfShard) continue
    const [row, secondsMax] = KEPT[kind!]!
    const seconds = Number(await redis.ask('ttl', key))
    // Three more, as times are rounded up, when a record is written and when Redis is asked.
    assert.ok(seconds > 0 && seconds <= secondsMax + 3, `${key} ends in ${seconds} s`)
    assert.ok(PRIVACY.includes(`| ${row} |`), row)
    kinds.add(kind!)
  }
  assert.deepEqual([...kinds].sort(), Object.keys(KEPT).sort())
}

for (const kind of STORE_KINDS)
  test(`${kind}: a visitor’s address is in no file, log, metric, trace or answer but the redemption’s; forget removes its records`, async () => {
    const places: [name: string, content: Buffer][] = []
    listenToAnswers((method, path, { headers, text, json }) => {
      const tellsAddress = path === '/verify-token' && json.success === true
      if (!tellsAddress) places.push([`${method} ${path}`, Buffer.from(JSON.stringify(headers) + text)])
    })
    const redis = kind === 'redis' ? await RedisServer.start(['--appendonly', 'yes']) : undefined
    // Always 'embedded', which starts no Redis: the test's own is used, because it writes a file of all commands.
    const { service, adminUrl } = await startObserved('embedded', {
      POWGATE_TRUSTED_PROXIES: '127.0.0.1',
      POWGATE_LOG_SUCCESSES: '1',
      LOG_LEVEL: 'trace',
      ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
    })
    await service.untilReady()
    await redis?.ask('del', ...((await redis.ask('keys', 'pg:*:l:*')) as string[])) // of untilReady's addresses
    const site = await service.createSite({ difficulty: EASY, threshold: 0.5, plan: 'pro' })
    const client = new Client(service.url)
    const powgate = new Powgate(service.env)
    await visitInBrowser(service, site)
    const networks = ['192.0.2.0/24', '203.0.113.0/24', '2001:db8::/32']
    const ownLimits = { limits: { redeem: 50 }, known: { networks, limit: 60 } }
    const siteOfOwnLimits = await service.createSite({ difficulty: EASY, ...ownLimits })
    for (const address of ADDRESSES.map(formatAddress))
      for (const visited of [site, siteOfOwnLimits]) await leaveTraces(client, visited, address)
    if (redis !== undefined) assert.equal(await windowsIn(redis), 'c cj cr cs csj l lj ln lnj lr')
    // Blocked, and the block lifted again. (The list itself is the operator's, and is kept as it was written.)
    for (const block of [['--block', BLOCKED], ['--no-block']])
      await powgate.text('site update', site.siteKey, ...block)
    const audit = await powgate.text('audit')
    assert.ok(audit.includes('198.51.100.0/24') && !audit.includes(BLOCKED), audit)
    await eventually(60_000, 'the log', () => service.output.includes('"token-redeemed"'))
    for (const path of words('/metrics /dashboard/data.json /sites.json'))
      assert.equal((await call(adminUrl + path)).status, 200, path)
    if (redis !== undefined) {
      await assertEnds(redis)
      await redis.ask('save')
      const [, dir] = (await redis.ask('config', 'get', 'dir')) as string[]
      places.push(...filesBelow(dir!))
    } else {
      assert.equal(await service.end(), 0) // writes `state`, which the next start removes
      places.push(...filesBelow(service.dataDir))
      assert.ok(places.some(([name]) => name === join(service.dataDir, 'state')))
      await service.boot()
    }
    const [visited] = ADDRESSES.map(formatAddress)
    const { removed } = await powgate.json('forget', visited!)
    // A window of visits, a meter, and one of refusals for a minute, which a restart may outlast.
    assert.ok(removed >= (redis === undefined ? 2 : 3), `${removed} records`)
    for (const other of [...ADDRESSES.slice(1).map(formatAddress), '127.0.0.1'])
      await powgate.json('forget', other)
    if (redis !== undefined) assert.equal(await windowsIn(redis), '', 'forget misses none')
    const again = await client.challenge(site.siteKey, { headers: { 'X-Forwarded-For': visited! } })
    assert.equal(again.status, 200)
    assert.equal(await service.end(), 0)
    places.push(...filesBelow(service.dataDir), ['log', Buffer.from(service.output)])
    for (const network of ADDRESSES.map(formatNetwork)) {
      assert.match(service.output, new RegExp(`"verification-passed".*"ip":"${network}"`))
      assert.match(service.output, new RegExp(`"token-redeemed".*"visitorIp":"${network}"`))
    }
    for (const [name, content] of places) assert.deepEqual(addressesIn(content), [], name)
  })
