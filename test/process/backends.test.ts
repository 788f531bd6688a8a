/** What the primary process tells of backends: limits that they use half of, with the command that raises these; visitors not named. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddress } from '../../src/addresses/address.ts'
import { demoSiteKey } from '../../src/demo/site.ts'
import { BackendCounts, COUNTS_MAX } from '../../src/endpoints/backend-counts.ts'
import { createLogger } from '../../src/log/logger.ts'
import { API_KEYS_MAX, Backends } from '../../src/process/backends.ts'

/** The contract's limits a minute: of a backend's address, and of an API key. */
const CONTRACT: readonly [address: number, apiKey: number] = [100, 200]
/** `callerKey` names the window that counts the caller's requests. A site with limits of its own has other windows. */
const NAMES = { callerKey: 'c', siteKey: 'site_a', apiKeyId: 'k' }
/** What a worker counts of a redemption, if a test says nothing else. */
const REQUEST = { ...NAMES, limits: CONTRACT, isJunk: false, ignored: undefined, badBody: undefined }
type Request = Parameters<BackendCounts['note']>[1]

/** How much a backend sends; its address is 10.0.0.`host`. */
type Backend = Partial<typeof REQUEST> & { readonly perMinute: number; readonly host?: number }

const newBackends = () => new Backends(createLogger('silent', {}, []))
const newCounts = (isAddressWhole = true) => new BackendCounts(isAddressWhole, 64) // bits of the prefix of IPv6

function note(counts: BackendCounts, address: string, request: Request, namesVisitor = true): void {
  counts.note(parseAddress(address)!, request, namesVisitor)
}

const ADDED_AT_MS = 1000
const MINUTE_MS = 60_000

/** Tells the primary process what backends sent in a minute. @param hosts that share limits. @param isAddressWhole or networks are told */
function watched(backends: readonly Backend[], { hosts = 1, isAddressWhole = true } = {}): Backends {
  const watch = newBackends()
  const counts = newCounts(isAddressWhole)
  for (const { perMinute, host = 1, ...change } of backends) {
    const request = { ...REQUEST, ...change }
    const hasOwnLimits = change.limits !== undefined
    const callerKey = `${host}${hasOwnLimits ? request.siteKey : ''}`
    for (let count = 0; count < perMinute; count++) note(counts, `10.0.0.${host}`, { ...request, callerKey })
  }
  watch.add(counts.take(), ADDED_AT_MS)
  watch.update(hosts, ADDED_AT_MS + MINUTE_MS - 1)
  return watch
}

/** @returns a line for each that used half of a limit or more */
function linesOf(backends: readonly Backend[], setting?: Parameters<typeof watched>[1]): string[] {
  const watch = watched(backends, setting)
  const lines = watch.limitsHalfUsed.map(({ text }) => text)
  watch.update(1, ADDED_AT_MS + MINUTE_MS)
  assert.deepEqual(watch.limitsHalfUsed, [], 'a minute later')
  return lines
}

test('half of a limit is told with caller, rate, limit and the command; less is not', () => {
  assert.deepEqual(linesOf([{ perMinute: 49 }]), [])
  assert.deepEqual(linesOf([{ perMinute: 50 }]), [
    '10.0.0.1 sends 50 redemptions a minute for site_a, of 100 that it may: those beyond would be refused. To raise its limits: powgate site update site_a --limit-redeem 500',
  ])
  const [over, ...others] = linesOf([{ perMinute: 180 }])
  assert.match(over!, /^10\.0\.0\.1 sends 180 .* those beyond are refused\. .* --limit-redeem 1000$/)
  assert.deepEqual(others, [], 'the command raises the limit of the API key too')
  const most = linesOf([{ perMinute: 250_000, limits: [500_000, 500_000] }])
  assert.match(most.join(), /--limit-redeem 1000000$/, 'the highest that can be set')
})

test('an API key that several addresses use is told; hosts that share a limit count alike; the limit may be that of the site', () => {
  const spread = [1, 2, 3].map(host => ({ host, perMinute: 40 }))
  assert.match(linesOf(spread).join(), /^API key k sends 120 redemptions a minute for site_a, of 200 /)
  const estimate =
    /sends 50 redemptions a minute for site_a, if each of 2 hosts gets as many as this one, of 100 /
  assert.match(linesOf([{ perMinute: 25 }], { hosts: 2 }).join(), estimate)
  assert.deepEqual(linesOf([{ perMinute: 180, limits: [500, 500] }]), [])
})

test('where the log names networks, each backend of a network is judged by itself', () => {
  const limits = [100, 1000] as const
  const spread: Backend[] = [1, 2, 3].map(host => ({ host, perMinute: 40, limits }))
  assert.deepEqual(linesOf(spread, { isAddressWhole: false }), [])
  const [line] = linesOf([...spread, { host: 4, perMinute: 60 }], { isAddressWhole: false })
  assert.match(line!, /^10\.0\.0\.4 sends 60 /, 'private addresses are named whole')
  const logged: string[] = []
  const watch = new Backends(createLogger('info', {}, [], { write: text => logged.push(text) }))
  const counts = newCounts(false)
  for (const host of [1, 2]) {
    const names = { callerKey: `${host}`, siteKey: `site_${host}`, apiKeyId: `k${host}` }
    for (let count = 0; count < 150; count++) note(counts, `203.0.113.${host}`, { ...REQUEST, ...names })
  }
  watch.add(counts.take(), 0)
  watch.update(1, 0)
  const callers = logged.map(text => /"caller":"([^"]+)","site":"(site_\d)"/.exec(text)?.slice(1).join())
  assert.deepEqual(callers.sort(), ['203.0.113.0/24,site_1', '203.0.113.0/24,site_2'])
})

test('sites whose backends share an address are named; a busy one gets a limit of its own, else all do', () => {
  const busy = linesOf([
    { siteKey: 'site_b', perMinute: 20 },
    { siteKey: 'site_a', apiKeyId: 'l', perMinute: 60 },
  ])
  assert.match(busy.join(), /for site_a, site_b, of 100 .* update site_a --limit-redeem 500$/)
  const five = ['a', 'b', 'c', 'd', 'e'].map(name => ({ siteKey: name, apiKeyId: name, perMinute: 15 }))
  const many = linesOf(five)
  assert.match(
    many.join(),
    /for a, b, c and 2 more, .* set POWGATE_LIMIT_REDEEM_ADDRESS and POWGATE_LIMIT_REDEEM_API_KEY to 500$/,
  )
})

test('junk is told apart, without a command that raises a limit, and adds nothing to redemptions', () => {
  const [junk, ...others] = linesOf([{ isJunk: true, perMinute: 60 }, { perMinute: 40 }])
  assert.match(junk!, /^10\.0\.0\.1 sends 60 tokens a minute for site_a that are forged, .* of 100 /)
  assert.doesNotMatch(junk!, /--limit-redeem|POWGATE_LIMIT/)
  assert.deepEqual(others, [])
})

test('the largest share of a limit that is used counts neither junk nor what visitors of the demo send', () => {
  const { redeemLimitUsed, limitsHalfUsed } = watched([
    { perMinute: 20 },
    { host: 2, isJunk: true, perMinute: 90 },
    { host: 3, siteKey: demoSiteKey('sha256'), apiKeyId: 'd', perMinute: 300 },
  ])
  assert.deepEqual([redeemLimitUsed, limitsHalfUsed.length], [0.2, 1], 'the line is of the junk')
})

test('calls that are refused for their form are logged once per form, and are no junk', () => {
  const logged: string[] = []
  const watch = new Backends(createLogger('info', {}, [], { write: text => logged.push(text) }))
  const counts = newCounts()
  for (const badBody of ['content-type', 'body-shape expectedIp', 'body-shape expectedIp']) {
    for (let count = 0; count < 100; count++) note(counts, '::1', { ...REQUEST, isJunk: true, badBody })
    watch.add(counts.take(), 0)
  }
  watch.update(1, 0)
  assert.deepEqual(watch.limitsHalfUsed, [])
  const warnings = logged.filter(text => /"warn".*"redemption-malformed"/.test(text))
  assert.equal(warnings.length, 2)
})

test('a limit that was changed within the minute is told as it is now; IPv6 backends of one /64 share a limit', () => {
  const [watch, counts] = [newBackends(), newCounts()]
  for (const [host, limit] of [100, 110].entries()) {
    const counted = { ...REQUEST, callerKey: `${limit}`, limits: [limit, limit] as const }
    for (let count = 0; count < 30; count++) note(counts, `2001:db8::${host}`, counted)
    watch.add(counts.take(), 0)
  }
  watch.update(1, 0)
  assert.match(watch.limitsHalfUsed[0]?.text ?? '', /^2001:db8::\/64 sends 60 redemptions .*, of 110 /)
})

test(`a worker counts ${COUNTS_MAX} callers at most, and how many requests of each name the visitor`, () => {
  const counts = newCounts()
  const callers = COUNTS_MAX + 1
  for (let caller = 0; caller < callers; caller++)
    for (let request = 0; request < 2; request++) note(counts, '::1', { ...REQUEST, callerKey: `${caller}` })
  const [{ count, named } = assert.fail(), ...others] = counts.take()
  assert.deepEqual([count, named, others.length], [2, 2, COUNTS_MAX - 1])
})

test('a backend that names no visitor in 20 redemptions is told for a day; one that named any is not, nor is junk', () => {
  /** Redemptions come a millisecond apart; the first `named` name their visitor. It is asked `laterMs` after the last. */
  const told = (count: number, { named = 0, isJunk = false, laterMs = 0 } = {}) => {
    const [watch, counts] = [newBackends(), newCounts()]
    const counted = { ...REQUEST, isJunk }
    for (let index = 0; index < count; index++) {
      note(counts, '10.0.0.1', counted, index < named)
      watch.add(counts.take(), index)
    }
    watch.update(1, count - 1 + laterMs)
    return watch.unbound.map(({ text }) => text)
  }
  const line = told(20).join()
  assert.match(line, /^Of 20 redemptions with API key k for site_a none named .*: send expectedIp/)
  assert.deepEqual([told(19), told(30, { named: 1 }), told(30, { isJunk: true })], [[], [], []])
  const day = 86_400_000
  assert.equal(told(20, { laterMs: day - 1 }).length, 1)
  assert.deepEqual(told(20, { laterMs: day }), [], 'a key that is unused for a day was replaced')
})

test('a backend that begins to name visitors is no longer told; API keys beyond the bound are not looked at', () => {
  const [watch, counts] = [newBackends(), newCounts()]
  const unboundAt = (nowMs: number) => {
    watch.update(1, nowMs)
    return watch.unbound.length
  }
  const redeem = (apiKeyId: string, namesVisitor: boolean) => {
    note(counts, '10.0.0.1', { ...REQUEST, apiKeyId, callerKey: apiKeyId }, namesVisitor)
    watch.add(counts.take(), 0)
  }
  for (let index = 0; index < 20; index++) redeem('first', false)
  for (let index = 0; index <= API_KEYS_MAX; index++) redeem(`other ${index}`, false)
  assert.equal(unboundAt(0), 1)
  redeem('first', true)
  assert.equal(unboundAt(0), 0)
  assert.equal(unboundAt(86_400_000), 0, 'a day later all are forgotten, so there is room')
  for (let index = 0; index < 20; index++) redeem('new', false)
  assert.equal(unboundAt(0), 1)
})
