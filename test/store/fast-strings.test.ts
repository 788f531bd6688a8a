import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

const CONNECTION = new URL('../../src/store/redis/connection.ts', import.meta.url).href

/** What V8 says of String.prototype in a process that has loaded a module. */
function isFastAfter(module: string): string {
  const script = `await import(${JSON.stringify(module)}); console.log(%HasFastProperties(String.prototype))`
  const flags = ['--allow-natives-syntax', '--import', 'tsx', '--input-type=module', '--eval', script]
  return execFileSync(process.execPath, flags, { encoding: 'utf8' }).trim()
}

test('the Redis store leaves String.prototype fast, which ioredis makes slow', () => {
  assert.equal(isFastAfter('ioredis'), 'false', 'ioredis does it no more: connection.ts need not mend it')
  assert.equal(isFastAfter(CONNECTION), 'true')
})
