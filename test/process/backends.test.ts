/** How near backends are to the limits of redemptions: when it is told, of whom, and with which command. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddress } from '../../src/addresses/address.ts'
import { demoSiteKey } from '../../src/demo/site.ts'
import { BackendCounts, COUNTS_MAX } from '../../src/endpoints/backend-counts.ts'
import { createLogger } from '../../src/log/logger.ts'
import { API_KEYS_MAX, Backends } from '../../src/process/backends.ts'

const GOOD_BODY = { ignored: undefined, badBody: undefined }
const newBackends = () => new Backends(createLogger('silent', {}, []))
/** The contract's limits a minute: of a backend's address, and of an API key. */
const CONTRACT = [100, 200] as const
/** An address (the last byte of 10.0.0.x), a site, an API key, redemptions a minute, and its limits. */
type Row = [host: number, site: string, key: string, perMinute: number, limits?: Limits, isJunk?: boolean]
type Limits = readonly [number, number]

/** Has been told what backends sent in a minute. @param hosts that share the limits @param isAddressWhole else the log names networks */
function watched(rows: readonly Readonly<Row>[], hosts = 1, isAddressWhole = true): Backends {
  const watch = newBackends()
  const counts = new BackendCounts(isAddressWhole, 64)
  for (const [host, siteKey, apiKeyId, perMinute, limits = CONTRACT, isJunk = false] of rows)
    for (let count = 0; count < perMinute; count++) {
      const callerKey = `${host}${limits === CONTRACT ? '' : siteKey}` // a site with limits of its own has its own window
      const counted = { callerKey, siteKey, apiKeyId, limits, isJunk, ...GOOD_BODY }
      counts.note(parseAddress(`10.0.0.${host}`)!, counted, true)
    }
  watch.add(counts.take(), 1000)
  watch.update(hosts, 60_999)
  return watch
}

/** What is told of them. */
function near(rows: readonly Row[], hosts = 1, isAddressWhole = true): string[] {
  const watch = watched(rows, hosts, isAddressWhole)
  const found = watch.limitsHalfUsed.map(({ text }) => text)
  watch.update(hosts, 61_000)
  assert.deepEqual(watch.limitsHalfUsed, [], 'a minute later')
  return found
}

test('half of a limit is told with caller, rate, limit and the command; less is not', () => {
  assert.deepEqual(near([[1, 'site_a', 'k', 49]]), [])
  assert.deepEqual(near([[1, 'site_a', 'k', 50]]), [
    '10.0.0.1 sends 50 redemptions a minute for site_a, of 100 that it may: those beyond would be refused. To raise its limits: powgate site update site_a --limit-redeem 500',
  ])
  const [over, ...others] = near([[1, 'site_a', 'k', 180]])
  assert.match(over!, /^10\.0\.0\.1 sends 180 .* those beyond are refused\. .* --limit-redeem 1000$/)
  assert.deepEqual(others, [], 'the command raises the limit of the API key too')
  const most = near([[1, 'site_a', 'k', 250_000, [500_000, 500_000]]])
  assert.match(most.join(), /--limit-redeem 1000000$/, 'the highest that can be set')
})

test('an API key that several addresses use, hosts that share the limits, and a limit of the site', () => {
  const spread: Row[] = [1, 2, 3].map(host => [host, 'site_a', 'k', 40])
  assert.match(near(spread).join(), /^API key k sends 120 redemptions a minute for site_a, of 200 /)
  const estimate =
    /sends 50 redemptions a minute for site_a, if each of 2 hosts gets as many as this one, of 100 /
  assert.match(near([[1, 'site_a', 'k', 25]], 2).join(), estimate)
  assert.deepEqual(near([[1, 'site_a', 'k', 180, [500, 500]]]), [])
})

test('where the log names networks, each backend of a network is judged by itself', () => {
  const spread: Row[] = [1, 2, 3].map(host => [host, 'site_a', 'k', 40, [100, 1000]])
  assert.deepEqual(near(spread, 1, false), [])
  assert.match(
    near([...spread, [4, 'site_a', 'k', 60]], 1, false).join(),
    /^10\.0\.0\.4 sends 60 /,
    'private',
  )
  const lines: string[] = []
  const watch = new Backends(createLogger('info', {}, [], { write: line => lines.push(line) }))
  const counts = new BackendCounts(false, 64)
  for (const host of [1, 2]) {
    const counted = {
      ...REQUEST,
      isJunk: false,
      callerKey: `${host}`,
      siteKey: `site_${host}`,
      apiKeyId: `k${host}`,
    }
    for (let count = 0; count < 150; count++) counts.note(parseAddress(`203.0.113.${host}`)!, counted, true)
  }
  watch.add(counts.take(), 0)
  watch.update(1, 0)
  const told = lines.map(line => /"caller":"([^"]+)","site":"(site_\d)"/.exec(line)?.slice(1))
  assert.deepEqual(
    told.sort(),
    [1, 2].map(host => ['203.0.113.0/24', `site_${host}`]),
  )
})

test('sites whose backends share an address are named; a busy one gets a limit of its own, else all do', () => {
  const busy = near([
    [1, 'site_b', 'k', 20],
    [1, 'site_a', 'l', 60],
  ])
  assert.match(busy.join(), /for site_a, site_b, of 100 .* update site_a --limit-redeem 500$/)
  const many = near(['a', 'b', 'c', 'd', 'e'].map(site => [1, site, site, 15]))
  assert.match(
    many.join(),
    /for a, b, c and 2 more, .* set POWGATE_LIMIT_REDEEM_ADDRESS and POWGATE_LIMIT_REDEEM_API_KEY to 500$/,
  )
})

test('junk is told apart, without a command that raises a limit, and adds nothing to redemptions', () => {
  const [junk, ...others] = near([
    [1, 'site_a', 'k', 60, CONTRACT, true],
    [1, 'site_a', 'k', 40],
  ])
  assert.match(junk!, /^10\.0\.0\.1 sends 60 tokens a minute for site_a that are forged, .* of 100 /)
  assert.doesNotMatch(junk!, /--limit-redeem|POWGATE_LIMIT/)
  assert.deepEqual(others, [])
})

test('the share of a limit is told from 0 on; what visitors of a demo send counts for nothing', () => {
  const [own, junk] = [[1, 'site_a', 'k', 20] as const, [2, 'site_a', 'k', 90, CONTRACT, true] as const]
  const { redeemLimitUsed, limitsHalfUsed } = watched([own, junk, [3, demoSiteKey('sha256'), 'd', 300]])
  assert.deepEqual([redeemLimitUsed, limitsHalfUsed.length], [0.2, 1])
})

const REQUEST = { callerKey: 'c', siteKey: 'site_a', apiKeyId: 'k', limits: CONTRACT, ...GOOD_BODY }

test('calls that are refused for their form are told once, and are no junk', () => {
  const lines: string[] = []
  const watch = new Backends(createLogger('info', {}, [], { write: line => lines.push(line) }))
  const counts = new BackendCounts(true, 64)
  for (const badBody of ['content-type', 'body-shape expectedIp', 'body-shape expectedIp']) {
    for (let count = 0; count < 100; count++)
      counts.note(parseAddress('::1')!, { ...REQUEST, isJunk: true, badBody }, true)
    watch.add(counts.take(), 0)
  }
  watch.update(1, 0)
  assert.deepEqual(watch.limitsHalfUsed, [])
  const warnings = lines.filter(line => /"warn".*"redemption-malformed"/.test(line))
  assert.equal(warnings.length, 2)
})

test('the limit that is told is the one that a site got last, also of IPv6 backends whose prefix shares it', () => {
  const [watch, counts] = [newBackends(), new BackendCounts(true, 64)]
  for (const [host, limit] of [100, 110].entries()) {
    const counted = { ...REQUEST, isJunk: false, callerKey: `${limit}`, limits: [limit, limit] as const }
    for (let count = 0; count < 30; count++) counts.note(parseAddress(`2001:db8::${host}`)!, counted, true)
    watch.add(counts.take(), 0)
  }
  watch.update(1, 0)
  assert.match(watch.limitsHalfUsed[0]?.text ?? '', /^2001:db8::\/64 sends 60 redemptions .*, of 110 /)
})

test('a worker counts 1000 callers at most, and how many requests of each name the visitor', () => {
  const counts = new BackendCounts(true, 64)
  for (let index = 0; index < 2 * COUNTS_MAX + 2; index++)
    counts.note(parseAddress('::1')!, { ...REQUEST, isJunk: false, callerKey: `${index >> 1}` }, true)
  const [{ count, named } = assert.fail(), ...others] = counts.take()
  assert.deepEqual([count, named, others.length], [2, 2, COUNTS_MAX - 1])
})

test('a backend that names no visitor in 20 redemptions is told; one that named any is not, nor is junk', () => {
  const told = (count: number, named: number, isJunk = false, laterMs = 0) => {
    const [watch, counts] = [newBackends(), new BackendCounts(true, 64)]
    const counted = { ...REQUEST, isJunk }
    for (let index = 0; index < count; index++) {
      counts.note(parseAddress('10.0.0.1')!, counted, index < named)
      watch.add(counts.take(), index)
    }
    watch.update(1, count - 1 + laterMs)
    return watch.unbound.map(({ text }) => text)
  }
  const line = told(20, 0).join()
  assert.match(line, /^Of 20 redemptions with API key k for site_a none named .*: send expectedIp/)
  assert.deepEqual([told(19, 0), told(30, 1), told(30, 0, true)], [[], [], []])
  const day = 86_400_000
  assert.deepEqual([told(20, 0, false, day - 1).length, told(20, 0, false, day)], [1, []], 'a key replaced')
})

test('a backend that begins to name visitors is no longer told, even with more API keys than are kept', () => {
  const [watch, counts] = [newBackends(), new BackendCounts(true, 64)]
  const unboundAt = (nowMs: number) => {
    watch.update(1, nowMs)
    return watch.unbound.length
  }
  const note = (apiKeyId: string, isNamed: boolean) => {
    const counted = { ...REQUEST, isJunk: false, apiKeyId, callerKey: apiKeyId }
    counts.note(parseAddress('10.0.0.1')!, counted, isNamed)
    watch.add(counts.take(), 0)
  }
  for (let index = 0; index < 20; index++) note('first', false)
  for (let index = 0; index <= API_KEYS_MAX; index++) note(`other ${index}`, false)
  assert.equal(unboundAt(0), 1)
  note('first', true)
  assert.equal(unboundAt(0), 0)
  assert.equal(unboundAt(86_400_000), 0, 'all are forgotten')
  for (let index = 0; index < 20; index++) note('new', false)
  assert.equal(unboundAt(0), 1)
})
