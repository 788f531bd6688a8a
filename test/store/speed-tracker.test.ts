/** Votes on devices' speed, from workers to a real store, and the estimates that come back. */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { parseAddress } from '../../src/domain/address.ts'
import { VOTE_STEP } from '../../src/domain/calibrator.ts'
import { openSiteStore } from '../../src/store/open.ts'
import { SpeedTracker } from '../../src/store/speed-tracker.ts'

const [SITE, OTHER_SITE] = ['site_0123456789ABCDEFabcdef', 'site_0123456789ABCDEFabcdeg']
const dataDir = mkdtempSync(join(tmpdir(), 'powgate-speeds-'))
const store = await openSiteStore(loadConfig({ POWGATE_DATA_DIR: dataDir }))
after(async () => {
  await store.close()
  rmSync(dataDir, { recursive: true })
})

let nowMs = 0
/** What was sent to the store, as objects. */
const calls: object[] = []

function tracker(): SpeedTracker {
  const addVotes = (votes: ReadonlyMap<string, number>) => {
    calls.push(Object.fromEntries(votes))
    return store.addVotes(votes)
  }
  return new SpeedTracker({ addVotes }, () => nowMs, 7)
}

const isNear = (lead: number, votes: number) => Math.abs(lead - votes * VOTE_STEP) < 1e-12

test('a network has one vote in ten minutes, and workers share what they learn', async () => {
  const [one, another] = [tracker(), tracker()]
  const vote = (ip: string, by = one) => by.vote(SITE, parseAddress(ip)!, 1)
  for (const ip of [
    '192.0.2.1',
    '192.0.2.255',
    '192.0.3.1',
    '2001:db8:1::1',
    '2001:db8:1:f::',
    '2001:db8:2::',
  ])
    vote(ip)
  one.vote(SITE, parseAddress('198.51.100.1')!, 0)
  await one.exchange()
  assert.deepEqual(calls.splice(0), [{ [SITE]: 4 }])
  assert.ok(isNear(one.lead(SITE), 4))
  nowMs += 599_000
  vote('192.0.2.1')
  vote('192.0.2.1', another)
  await another.exchange()
  assert.ok(isNear(another.lead(SITE), 5), 'of another worker too')
  nowMs += 2000
  vote('192.0.2.1')
  await one.exchange()
  assert.ok(isNear(one.lead(SITE), 6))
  calls.length = 0
})

test('a site is asked for once a minute while it is used, and without such sites nothing is called', async () => {
  const one = tracker()
  await one.exchange()
  assert.deepEqual([one.lead(SITE), one.lead(OTHER_SITE)], [0, 0], 'not known yet')
  await one.exchange()
  assert.ok(isNear(one.lead(SITE), 6) && one.lead(OTHER_SITE) === 0)
  await one.exchange()
  nowMs += 60_001
  assert.ok(isNear(one.lead(SITE), 6), 'the last known')
  await one.exchange()
  assert.deepEqual(calls, [{ [SITE]: 0, [OTHER_SITE]: 0 }, { [SITE]: 0 }])
})
