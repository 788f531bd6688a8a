/** The table of docs/howto/capacity.md is true: what each step of a visit leaves in a real Redis, in bytes, and for how long. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { challengeOn, freshNonce, meteringOf, redemptionOn, SITE, solutionOn, startRedis } from './harness.ts'

const VISITS = 20_000
/** The contract's lifetimes. */
const [CHALLENGE_MS, TOKEN_MS] = [120_000, 300_000]
/** The client makes claims of this length. */
const CLAIM = 'c'.repeat(43)

test('visits from an address each leave the bytes in Redis that the capacity page tells, for as long as it tells', async t => {
  const { store, admin } = await startRedis(t)
  const now = Date.now()
  const storeEpoch = store.requests.epochOf(SITE)!
  const visits = Array.from({ length: VISITS }, (_, index) => {
    const number = index.toString(16).padStart(6, '0')
    // Shard, tag of the network, bits within it: of 256 addresses a network, its meter adds less than a byte to each visit.
    const addressKey = `0a${number.slice(0, 4)}ownr${number.slice(4)}`
    const metering = meteringOf(addressKey)
    const spend = { nonce: freshNonce(now), storeEpoch, expiresAtMs: now + CHALLENGE_MS }
    return { addressKey, metering, spend }
  })
  const memory = async () => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))![1])
  type Step = (visit: (typeof visits)[number]) => Promise<unknown>
  // How long keys last is asked of the last visit, which has just been made when a pass ends.
  const { addressKey, spend } = visits.at(-1)!
  const page = readFileSync(new URL('../../docs/howto/capacity.md', import.meta.url), 'utf8')
  const measure = async (name: string, step: Step, key: string) => {
    const before = await memory()
    for (let start = 0; start < VISITS; start += 500)
      await Promise.all(visits.slice(start, start + 500).map(step))
    const bytes = ((await memory()) - before) / VISITS
    const seconds = await admin.ttl(`test:{0}:${key}`)
    const row = page.split('\n').find(line => line.startsWith(`| ${name} |`))
    const [told, lasts] = row?.split('|').slice(2).map(Number) ?? []
    const about = `${name}: ${bytes.toFixed(0)} bytes for ${seconds} s, the page says ${told} for ${lasts}`
    // Redis' allocator rounds sizes up, and its tables grow by doubling, so 15 % may differ, or 15 bytes.
    assert.ok(Math.abs(bytes - told!) <= Math.max(15, 0.15 * told!), about)
    assert.ok(Math.abs(seconds - lasts!) <= 10, about)
    t.diagnostic(about)
  }
  // `l:` is an address log, `r:` a redemption record, which outlives the token by MARK_MARGIN_MS.
  await measure('a challenge', visit => challengeOn(store, visit), `l:${addressKey}`)
  await measure('its solution, on top', visit => solutionOn(store, visit), `l:${addressKey}`)
  const redeemed = (visit: (typeof visits)[number]) =>
    redemptionOn(store, {
      callerLimit: 1e6,
      apiKey: { id: 'key', limit: 1e6, siteKey: SITE },
      redeem: { ...visit.spend, claim: CLAIM, expiresAtMs: Date.now() + CHALLENGE_MS + TOKEN_MS },
    })
  await measure('its redemption, on top', redeemed, `r:${spend.nonce}`)
})
