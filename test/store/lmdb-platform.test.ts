import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkGlibc } from '../../src/store/embedded/lmdb-platform.ts'
import { StoreSetupError } from '../../src/store/store.ts'

test('a glibc for which lmdb has no binary is named, with what to do', () => {
  for (const glibc of ['2.28', '2.31', '2.33'])
    assert.throws(
      () => checkGlibc(glibc),
      error => error instanceof StoreSetupError && error.message.includes(`this is ${glibc}. Set REDIS_URL`),
    )
  for (const glibc of ['2.34', '2.41', undefined]) checkGlibc(glibc)
})
