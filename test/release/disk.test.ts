/**
 * Disks that are full or read-only. A redeemed token is not redeemed again, and either all sites are there or the service does not
 * start and prints a line that says why. test/store/embedded.test.ts has damaged data directories.
 */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { ALWAYS_EASY, TestService, UNLIMITED_REDEMPTIONS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { IS_ROOT } from '../setup.ts'

/** A service with a site and a token that was redeemed, and what the test does with them. */
async function stageOn(dataDir: string) {
  // Minutes later the token must still be refused as used, not as expired.
  const lasting = { ...UNLIMITED_REDEMPTIONS, POWGATE_TOKEN_SECONDS: '3600' }
  const service = await TestService.start('embedded', { ...lasting, POWGATE_DATA_DIR: dataDir })
  const { siteKey, apiKey } = await service.createSite({ difficulty: ALWAYS_EASY })
  const client = new Client(service.url)
  const newToken = () => client.token(siteKey, { from: freshAddress() })
  const redeem = (token: string) => client.verifyToken(apiKey, { token })
  const used = await newToken()
  assert.equal((await redeem(used)).status, 200)
  const sitesAndKeys = async () => {
    const store = await service.openSites()
    const records = [await store.listSites(), await store.listApiKeys()]
    return store.close().then(() => records)
  }
  /** @returns '' if it serves, or the lines that it printed at its end */
  const start = async () => {
    const from = service.output.length
    return service.boot().then(
      () => '',
      () => service.output.slice(from).trim(),
    )
  }
  const assertWhole = async (expected: unknown, about: string) => {
    assert.deepEqual(await sitesAndKeys(), expected, about)
    await eventually(15_000, `${about}: a visitor is served`, async () => {
      const token = await newToken().catch(() => undefined)
      return token !== undefined && (await redeem(token)).status === 200
    })
    const { status, json } = await redeem(used)
    assert.ok(['token-used', 'token-forgotten'].includes(json.code), `${about}: ${status}`)
  }
  return { service, client, siteKey, used, redeem, sitesAndKeys, start, assertWhole }
}

/** Asserts that the output is one readable line about POWGATE_DATA_DIR, with a required word and no stack. */
function assertLine(lines: string, word: string, about: string): void {
  const said = lines.split('\n').filter(line => !line.startsWith('{'))
  assert.equal(said.length, 1, `${about}: ${lines}`)
  assert.ok(said[0]!.startsWith('POWGATE_DATA_DIR: ') && said[0]!.includes(word), `${about}: ${lines}`)
}

const skip = !IS_ROOT && 'mounting needs root'
test('a full, then read-only disk: used tokens and sites stay, failed starts say why', { skip }, async t => {
  const disk = temporaryDir('disk')
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${6 * 2 ** 20},mode=700`, 'powgate-test', disk])
  t.after(() => execFileSync('umount', ['-l', disk]))
  const dataDir = join(disk, 'data')
  const { service, client, siteKey, used, redeem, sitesAndKeys, start, assertWhole } = await stageOn(dataDir)
  const filling = join(disk, 'fill')
  // Pieces of 1 MiB are added until there is room for no more of them, then smaller ones, down to the last byte.
  for (let bytes = 2 ** 20; bytes >= 1; bytes = Math.floor(bytes / 4))
    try {
      for (;;) writeFileSync(filling, Buffer.alloc(bytes), { flag: 'a' })
    } catch {}
  // They are kept in memory until the service ends, and then are too many to be saved on this disk.
  for (let index = 0; index < 1500; index++)
    assert.equal((await client.challenge(siteKey, { from: freshAddress() })).status, 200)
  assert.notEqual((await redeem(used)).status, 200)
  const makeSites = async () => {
    for (let count = 0; count < 20; count++) await service.createSite({ name: 'x'.repeat(100) })
  }
  await assert.rejects(makeSites(), /^\w+: POWGATE_DATA_DIR: .*was not done: the disk is full, or/)
  const expected = await sitesAndKeys()
  await service.end()
  const complaint = await start() // a start may serve all the same
  if (complaint !== '') assertLine(complaint, 'full', 'a full disk')
  rmSync(filling)
  if (complaint !== '') assert.equal(await start(), '')
  await assertWhole(expected, 'after the disk was full')

  await service.end()
  execFileSync('mount', ['-o', 'remount,ro', disk])
  assertLine(await start(), dataDir, 'a read-only disk')
  execFileSync('mount', ['-o', 'remount,rw', disk])
  assert.equal(await start(), '')
  await assertWhole(expected, 'after a read-only disk')
  await service.stop()
})
