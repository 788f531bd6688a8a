/** Lifetimes that an operator changes: nobody's token lives longer or shorter than was said, and none comes back. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshAddress } from '../harness/http.ts'
import { STORE_KINDS, TestService } from '../harness/service.ts'
import { assertNotRedeemed, assertPassed, assertRedeemed, assertRefused } from './answers.ts'
import { QuickClient } from './support.ts'

const SHORT_SECONDS = 2
const DIFFICULTY = { base: 16, min: 16, max: 16 }

for (const kind of STORE_KINDS) {
  test(`store ${kind}: a longer lifetime of tokens brings none back, a shorter one ends none`, async t => {
    const short = await TestService.start(kind, { POWGATE_TOKEN_SECONDS: String(SHORT_SECONDS) })
    t.after(() => short.stop())
    const { siteKey, apiKey } = await short.createSite({ difficulty: DIFFICULTY })
    const used = await tokenOf(short, siteKey)
    const unused = await tokenOf(short, siteKey)
    assertRedeemed(await redeem(short, apiKey, used.token))
    await short.end()
    const { POWGATE_DATA_DIR, REDIS_URL } = short.env
    const same = {
      POWGATE_DATA_DIR: POWGATE_DATA_DIR!,
      ...(REDIS_URL === undefined ? {} : { REDIS_URL }),
    }
    const long = await TestService.start('embedded', { ...same, POWGATE_TOKEN_SECONDS: '3600' })
    t.after(() => long.stop())
    const lasting = await tokenOf(long, siteKey)
    await new Promise(resolve => setTimeout(resolve, unused.expiresAt - Date.now() + 10))
    for (const { token } of [used, unused])
      assertNotRedeemed(await redeem(long, apiKey, token), 400, 'token-expired')
    await long.end()
    const again = await TestService.start('embedded', { ...same, POWGATE_TOKEN_SECONDS: '1' })
    t.after(() => again.stop())
    await new Promise(resolve => setTimeout(resolve, 1100))
    assertRedeemed(await redeem(again, apiKey, lasting.token))
    assertNotRedeemed(await redeem(again, apiKey, lasting.token), 400, 'token-used')
  })

  test(`store ${kind}: a challenge holds under the lifetimes that it was issued under, and no others`, async t => {
    const first = await TestService.start(kind, { POWGATE_CHALLENGE_SECONDS: '10' })
    t.after(() => first.stop())
    const { siteKey } = await first.createSite({ difficulty: DIFFICULTY })
    const from = { from: freshAddress() }
    const solve = async () => {
      const client = new QuickClient(first.url)
      return client.solved(siteKey, from)
    }
    const [spent, unspent] = [await solve(), await solve()]
    assertPassed(await new QuickClient(first.url).verify(siteKey, spent, from))
    await first.end()
    const { POWGATE_DATA_DIR, REDIS_URL } = first.env
    const second = await TestService.start('embedded', {
      POWGATE_DATA_DIR: POWGATE_DATA_DIR!,
      ...(REDIS_URL === undefined ? {} : { REDIS_URL }),
      POWGATE_CHALLENGE_SECONDS: '600',
    })
    t.after(() => second.stop())
    for (const solution of [spent, unspent]) {
      const answer = await new QuickClient(second.url).verify(siteKey, solution, from)
      assertRefused(answer, 400, 'invalid-nonce')
    }
  })
}

test('a redemption is remembered for as long as its challenge could yield another token, whatever the host that redeems has set', async t => {
  const long = await TestService.start('redis', { POWGATE_CHALLENGE_SECONDS: '600' })
  t.after(() => long.stop())
  const { siteKey, apiKey } = await long.createSite({ difficulty: DIFFICULTY })
  const { token } = await tokenOf(long, siteKey)
  const short = await TestService.start('embedded', {
    REDIS_URL: long.env.REDIS_URL!,
    POWGATE_CHALLENGE_SECONDS: '10',
    POWGATE_TOKEN_SECONDS: '1',
  })
  t.after(() => short.stop())
  assertRedeemed(await redeem(short, apiKey, token))
  const [mark] = (await long.redis!.ask('keys', '*:r:*')) as string[]
  const leftSeconds = Number(await long.redis!.ask('ttl', mark!))
  assert.ok(leftSeconds >= 600 + 300, `${mark} is kept for ${leftSeconds} s`)
})

async function tokenOf({ url }: TestService, siteKey: string): Promise<{ token: string; expiresAt: number }> {
  const from = { from: freshAddress() }
  const client = new QuickClient(url)
  const answer = await client.verify(siteKey, await client.solved(siteKey, from), from)
  assertPassed(answer)
  return answer.json
}

function redeem({ url }: TestService, apiKey: string, token: string) {
  return new QuickClient(url).verifyToken(apiKey, { token })
}
