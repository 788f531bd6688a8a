/** On which platforms the service starts, and what it says on the others. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unsupported } from '../../src/process/supported-platform.ts'

const FITS = { version: '22.11.0', system: 'linux', processor: 'x64', glibc: '2.36', hasServer24: false }

test('supported platforms are accepted', () => {
  for (const version of ['20.12.0', '20.19.5', '22.0.0', '22.21.1'])
    assert.equal(unsupported({ ...FITS, version }), undefined)
  assert.equal(unsupported({ ...FITS, processor: 'arm64', glibc: '2.28' }), undefined)
  assert.equal(unsupported({ ...FITS, system: 'darwin', glibc: undefined }), undefined)
  assert.equal(unsupported({ ...FITS, version: '24.1.0', glibc: '2.38', hasServer24: true }), undefined)
})

test('each other platform is refused in one line that says what was found and what would fit', () => {
  const cases = [
    [{ version: '18.20.8' }, /this is 18\.20\.8\. Try: npx/],
    [{ version: '20.11.1' }, /from 20\.12.*this is 20\.11\.1/],
    [
      { version: '24.1.0', glibc: '2.38' },
      /Node\.js 24 needs .*: npm install --no-save uWebSockets\.js@\S+@[\d.]+\. Or/,
    ],
    [
      { version: '24.1.0', glibc: '2.37', hasServer24: true },
      /24 needs .*2\.38 or newer; this is glibc 2\.37/,
    ],
    [{ version: '25.1.0', hasServer24: true }, /this is 25\.1\.0\. Try: npx/],
    [{ processor: 'arm' }, /x64 and arm64.*for arm\./],
    [{ glibc: '2.17' }, /2\.28 or newer; this is glibc 2\.17/],
    [{ glibc: undefined }, /another C library, such as musl.*node:22-bookworm-slim/],
  ] as const
  for (const [odd, expected] of cases) {
    const line = unsupported({ ...FITS, ...odd })
    assert.match(line ?? '', expected)
    assert.doesNotMatch(line ?? '', /\n/)
  }
})
