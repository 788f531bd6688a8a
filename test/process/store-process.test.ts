import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/log/logger.ts'
import { StoreProcess } from '../../src/process/store-process.ts'

test('a store process that cannot be forked, such as while Node.js is upgraded, is a start that failed, not one that hangs', async t => {
  const path = process.execPath
  t.after(() => (process.execPath = path))
  process.execPath = '/nowhere/node'
  const store = new StoreProcess(loadConfig({}), createLogger('silent', {}, []))
  await assert.rejects(store.start(), { name: 'StoreSetupError', message: /ENOENT/ })
})
