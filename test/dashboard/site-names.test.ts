/** Names of sites: read rarely, and never waited for. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SiteNames } from '../../src/dashboard/site-names.ts'

const KEYS = ['site_a', 'site_b']

function named(keys: readonly string[]): Map<string, string> {
  return new Map(keys.map(key => [key, `name of ${key}`]))
}

test('names are read once in half a minute, and sooner if one is missing', async () => {
  let nowMs = 0
  const asked: (readonly string[])[] = []
  const names = new SiteNames(
    async keys => {
      asked.push(keys)
      return named(keys)
    },
    () => nowMs,
  )
  await names.refresh([])
  assert.deepEqual(asked, [], 'nothing to ask')
  await names.refresh(['site_a'])
  nowMs = 2000
  await names.refresh(KEYS)
  assert.deepEqual([names.get('site_a'), names.get('site_b')], ['name of site_a', undefined])
  nowMs = 3000
  await names.refresh(KEYS)
  nowMs = 32_000
  await names.refresh(KEYS)
  assert.deepEqual(asked, [['site_a'], KEYS])
  nowMs = 33_001
  await names.refresh(KEYS)
  assert.equal(asked.length, 3)
})

test('a store that fails or hangs holds nobody up; what was known stays', async () => {
  let nowMs = 0
  let read: (keys: readonly string[]) => Promise<Map<string, string>> = async keys => named(keys)
  const names = new SiteNames(
    keys => read(keys),
    () => nowMs,
  )
  await names.refresh(KEYS)
  nowMs += 60_000
  read = () => Promise.reject(new Error('away'))
  await names.refresh(KEYS)
  assert.equal(names.get('site_a'), 'name of site_a')
  nowMs += 60_000
  let reads = 0
  read = () => {
    reads++
    return new Promise(() => {})
  }
  await names.refresh(KEYS)
  nowMs += 60_000
  await names.refresh(KEYS)
  assert.equal(reads, 1, 'one that hangs is not asked again')
  assert.equal(names.get('site_a'), 'name of site_a')
})
