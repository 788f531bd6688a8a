/**
 * Settings of a site, in the sections of the contract (docs/reference/contract.md) that they belong to, which leaves them open: limits,
 * prices, API keys that expire and report their last use. A disabled site is disabled for all its visitors at once.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { apiKeyId } from '../../src/domain/site.ts'
import { baseOf } from '../../src/domain/site-fields.ts'
import { createApiKey, updateApiKey } from '../../src/sites/sites.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { type Answer, freshAddress } from '../harness/http.ts'
import { CONNECTIONS, EASY } from '../harness/service.ts'
import {
  assertAdmits,
  assertNotRedeemed,
  assertPassed,
  assertRedeemed,
  assertRefused,
  requestsUntilLimited,
} from './answers.ts'
import { onEachStore, type Subject, untilAll, withWrongSecret } from './support.ts'

function siteSettingTests(subject: Subject): void {
  const challenge = (siteKey: string, from: string) => subject.client.challenge(siteKey, { from })
  const redeem = (apiKey: string, from: string, body: unknown = '{}') =>
    subject.client.verifyToken(apiKey, body, { from })

  test('§8, decided: a site has limits of its own, and its headers tell them', async () => {
    const visitor = await subject.visitorOf({ limits: { challenge: 5, verify: 3, redeem: 4 } })
    const ofChallenges = { refusedBy: 'address-site', policies: { address: 60, 'address-site': 5 } }
    await assertAdmits(5, () => visitor.challenge(), 200, ofChallenges)
    const ofSolutions = { refusedBy: 'address-site', policies: { address: 30, 'address-site': 3 } }
    await assertAdmits(3, () => visitor.verify('{}'), 400, ofSolutions)
    const ofRedemptions = { refusedBy: 'api-key', policies: { address: 4, 'api-key': 4 } }
    await assertAdmits(4, () => visitor.redeem('{}'), 400, ofRedemptions)
    const elsewhere = await visitor.at(subject.site).challenge()
    assert.equal(elsewhere.status, 200, 'another site has the usual ones')
  })

  test('§8, decided: limits of a site may be higher; those of the address hold nevertheless', async () => {
    const visitor = await subject.visitorOf({ limits: { challenge: 50, verify: 1000 } })
    const ofChallenges = { refusedBy: 'address-site', policies: { address: 60, 'address-site': 50 } }
    await assertAdmits(50, () => visitor.challenge(), 200, ofChallenges)
    const ofSolutions = { refusedBy: 'address', policies: { address: 30, 'address-site': 1000 } }
    await assertAdmits(30, () => visitor.verify('{}'), 400, ofSolutions)
  })

  test('§8, decided: the redemption limit of a site holds for the address of its backend too', async () => {
    const { siteKey, apiKey } = await subject.createSite({ limits: { redeem: 250 } })
    const second = await subject.withSites(store => createApiKey(store, siteKey))
    const from = freshAddress()
    // What another site's backend redeems from this address uses up the usual limit there, and nothing of this site's.
    const elsewhere = await requestsUntilLimited(() => redeem(subject.site.apiKey, from), 400)
    assert.equal(elsewhere.admitted, 100)
    let asked = 0
    const ask = () => redeem(asked++ % 2 === 0 ? apiKey : second.apiKey, from) // each key alone could redeem 250
    const policies = { address: 250, 'api-key': 250 }
    await assertAdmits(250, ask, 400, { refusedBy: 'address', policies })
  })

  test('§8, decided: a known network has a limit of its own at this site, and takes nothing from others', async () => {
    const from = freshAddress()
    const site = await subject.createSite({ known: { networks: [`${from}/32`], limit: 70 } })
    const visitor = subject.visitor(site, from)
    const limit = { refusedBy: 'address', policies: { address: 70, 'address-site': 70 } }
    const solution = await visitor.solved()
    assertPassed(await visitor.verify(solution))
    assertRefused(await visitor.verify(solution), 400, 'nonce-used')
    await assertAdmits(70 - 1, () => visitor.challenge(), 200, limit) // one was solved above
    await assertAdmits(70, () => visitor.verify('{}'), 400, limit)
    const usual = { refusedBy: 'address-site', policies: { address: 60, 'address-site': 30 } }
    await assertAdmits(30, () => visitor.at(subject.site).challenge(), 200, usual)
    const other = subject.visitor(site)
    assert.equal((await requestsUntilLimited(() => other.challenge(), 200)).admitted, 30)
  })

  test('§8, decided: what a site does not set of its own is as usual, also once it is dropped', async () => {
    const visitor = await subject.visitorOf({ limits: { verify: 3 } })
    const verify = () => visitor.verify('{}')
    assert.equal((await requestsUntilLimited(() => visitor.challenge(), 200)).admitted, 30)
    assert.equal((await requestsUntilLimited(verify, 400)).admitted, 3)
    await subject.changeSite(visitor.site.siteKey, { limits: {} })
    await eventually(PATIENCE_MS, 'the usual limit', async () => (await verify()).status === 400)
  })

  test('§2.1, decided: a site names a solving time: all its challenges have the bits that follow', async () => {
    const { siteKey } = await subject.createSite({ difficulty: { base: 16, solveMs: 130, min: 16, max: 28 } })
    const bits = baseOf({ solveMs: 130, min: 16, max: 28 }, 'sha256')
    for (let asked = 0; asked < 3; asked++)
      assert.equal((await challenge(siteKey, freshAddress())).json.difficulty, bits)
  })

  test('§2.1, decided: challenges climb to the limit of an address, also where a site allows it more', async () => {
    const visitor = await subject.visitorOf({ limits: { challenge: 240 }, difficulty: EASY })
    const bits = []
    for (let asked = 0; asked < 60; asked++) bits.push((await visitor.challenge()).json.difficulty)
    assert.equal(bits[0], EASY.base)
    assert.equal(bits[59], EASY.base + 4, "four bits at the address's limit of 60, not at the site's of 240")
  })

  test('§3 fact 1, decided: a raise holds for challenges of before too, from the second bit on (lateBits of domain/pricing.ts)', async () => {
    const visitor = await subject.visitorOf({ difficulty: EASY })
    const { siteKey } = visitor.site
    const [first, second] = [await visitor.solved(), await visitor.solved()]
    const raise = async (bits: number) => {
      await subject.changeSite(siteKey, { raise: { bits, until: Date.now() + 60_000 } })
      const isRaised = ({ json }: Answer) => json.difficulty === 16 + bits
      await untilAll('the raise', isRaised, () => challenge(siteKey, freshAddress()))
    }
    await raise(1)
    assertPassed(await visitor.verify(first))
    await raise(2)
    assertRefused(await visitor.verify(second), 400, 'expired-nonce')
  })

  test('§5 rule 3, decided: an API key expires by itself, and may be given more time', async () => {
    const { siteKey, apiKey: other } = await subject.createSite()
    const later = { expiresAt: Date.now() + 3_600_000 }
    const { record, apiKey } = await subject.withSites(store => createApiKey(store, siteKey, later))
    assert.equal((await redeem(apiKey, freshAddress())).status, 400)
    const expiresAt = Date.now() + 3000
    await subject.withSites(store => updateApiKey(store, record.id, { expiresAt }))
    const early = await redeem(apiKey, freshAddress())
    if (Date.now() < expiresAt) assert.equal(early.status, 400)
    await sleep(expiresAt - Date.now() + 10)
    await untilAll('the key has expired', 401, async () => {
      await sleep(200) // otherwise requests that are still admitted would use up the limit of the key: 429
      return redeem(apiKey, freshAddress())
    })
    assertNotRedeemed(await redeem(apiKey, freshAddress()), 401, 'invalid-credentials')
    assertNotRedeemed(await redeem(other, freshAddress()), 400, 'invalid-body')
    await subject.withSites(store => updateApiKey(store, record.id, { expiresAt: null }))
    const isTaken = async () => (await redeem(apiKey, freshAddress())).status !== 401
    await eventually(PATIENCE_MS, 'it works again', isTaken)
  })

  test('§5 rule 2, decided: a disabled site is refused by every worker, its tokens too, until it is enabled', async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const token = await subject.client.token(siteKey, { from: freshAddress() })
    // Challenges show which workers know it: one that does not would redeem the token.
    const ask = () => challenge(siteKey, freshAddress())
    await untilAll('every worker knows the site', 200, ask)
    await untilAll('and its key', 400, () => redeem(apiKey, freshAddress()))
    await subject.changeSite(siteKey, { active: false })
    await untilAll('every worker refuses it', 403, ask)
    for (let count = 0; count < CONNECTIONS; count++) {
      assertRefused(await ask(), 403, 'site-inactive')
      assertNotRedeemed(await redeem(apiKey, freshAddress(), { token }), 401, 'invalid-credentials')
    }
    await subject.changeSite(siteKey, { active: true })
    await untilAll('it is served again', 200, ask)
    for (let count = 0; count < CONNECTIONS; count++)
      assert.equal((await redeem(apiKey, freshAddress())).status, 400)
    assertRedeemed(await redeem(apiKey, freshAddress(), { token }))
  })

  test('§5, decided: the last use of an API key is known after a restart', async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const { apiKey: second } = await subject.withSites(store => createApiKey(store, siteKey))
    const used = apiKeyId(apiKey)!
    const unused = apiKeyId(second)!
    const startedAt = Date.now()
    assert.equal((await redeem(apiKey, freshAddress())).status, 400)
    assert.equal((await redeem(withWrongSecret(second), freshAddress())).status, 401)
    const usedBy = Date.now()
    await subject.service.end()
    const readUses = () => subject.withSites(store => store.readUses([used, unused]))
    const uses = await readUses()
    assert.deepEqual([...uses.keys()], [used], 'only with the right secret')
    const usedAt = uses.get(used)!
    assert.ok(usedAt >= startedAt && usedAt <= usedBy, String(usedAt))
    await subject.service.boot()
    assert.deepEqual(await readUses(), uses)
  })
}

/** These tests have their own service, because one of them restarts it. */
onEachStore({ 'settings of a site': siteSettingTests })
