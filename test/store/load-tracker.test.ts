/** The load of a site, as workers count it, exchange it through a real store, and know it. */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { isAttack } from '../../src/domain/load.ts'
import { SourceWatch } from '../../src/domain/sources.ts'
import { LoadTracker } from '../../src/store/load-tracker.ts'
import { openSiteStore } from '../../src/store/open.ts'

const SITE = { siteKey: 'site_0123456789ABCDEFabcdef' }
const dataDir = mkdtempSync(join(tmpdir(), 'powgate-loads-'))
const sites = await openSiteStore(loadConfig({ POWGATE_DATA_DIR: dataDir }))
after(async () => {
  await sites.close()
  rmSync(dataDir, { recursive: true })
})

function tracker(): LoadTracker {
  const exchangeNetworks = () => Promise.reject(new Error('not part of this test'))
  return new LoadTracker({ sites, exchangeNetworks }, new SourceWatch(), 2, Date.now, Date.now)
}

test('a worker that only issues challenges knows of an attack that another accepts, and load of it is told apart', async () => {
  const [accepting, asking] = [tracker(), tracker()]
  for (let proof = 0; proof < 100; proof++) assert.equal(accepting.count(SITE, true), false)
  await accepting.exchange()
  assert.deepEqual([accepting.count(SITE, true), accepting.count(SITE, false)], [true, false])
  assert.ok(!isAttack(asking.load(SITE)))
  await asking.exchange()
  assert.ok(isAttack(asking.load(SITE)))
})
