/** The settings of the connection to Redis: URL, credentials and certificates, and the line for each mistake in them. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { describeTarget, parseRedisUrl } from '../../src/config/redis.ts'
import { OperatorError } from '../../src/words/errors.ts'
import { Certificates } from '../harness/redis-tls.ts'
import { TEST_SECRET } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { words } from '../harness/values.ts'

const certificates = new Certificates({ names: 'IP:127.0.0.1' })
const dir = temporaryDir('pem')

function file(name: string, content: string): string {
  const path = join(dir, name)
  writeFileSync(path, content)
  return path
}

const targetOf = (settings: Record<string, string>) =>
  loadConfig({ POWGATE_SECRETS: TEST_SECRET, ...settings }).redis!

function problemsOf(settings: Record<string, string>): readonly string[] {
  try {
    targetOf(settings)
    return []
  } catch (error) {
    assert.ok(error instanceof OperatorError)
    return error.message.split('\n')
  }
}

const { ca, clientCert: cert, clientKey: key } = certificates
const TLS = { REDIS_URL: 'rediss://h' }
const CA = 'POWGATE_REDIS_TLS_CA'
const CERT = 'POWGATE_REDIS_TLS_CERT'
const KEY = 'POWGATE_REDIS_TLS_KEY'
const USER = 'POWGATE_REDIS_USER'
const PASSWORD = 'POWGATE_REDIS_PASSWORD'
const SENTINEL_USER = 'POWGATE_SENTINEL_USER'
const SENTINEL_PASSWORD = 'POWGATE_SENTINEL_PASSWORD'

test('REDIS_URL: what a good one says, and bad ones', () => {
  const rows: [url: string, expected: string | undefined][] = [
    ['redis://localhost', 'standalone localhost:6379'],
    ['redis://user:p%40ss@10.0.0.1:7000/3', 'standalone 10.0.0.1:7000 db 3 user p@ss'],
    ['rediss://[::1]:80', 'standalone ::1:80 tls'],
    ['redis://a:1,redis://b:2', 'cluster a:1 b:2'],
    ['redis://:secret@a:1,b:2', 'cluster a:1 b:2 undefined secret'],
    ['redis+cluster://a', 'cluster a:6379'],
    ['redis+sentinel://a:1,b/main', 'sentinel a:1 b:26379 main'],
    ['rediss+sentinel://a/main/2', 'sentinel a:26379 db 2 main tls'],
    ['redis+sentinel://a:1/main,b:2/main', 'sentinel a:1 b:2 main'],
  ]
  const bad = words(
    'localhost:6379 http://localhost redis:// redis://host:notaport redis://host/x redis://a,http://b',
    'redis+sentinel://a:1 redis+cluster://a/1 redis://a:1/3,b:2 redis+sentinel://a:1/main,b:2/other',
  )
  for (const url of ['', ...bad]) rows.push([url, undefined])
  for (const [url, expected] of rows) {
    const target = parseRedisUrl(url)
    const { kind, nodes = [], db, username, password, primaryName, tls } = target ?? {}
    const all = [kind, ...nodes.map(({ host, port }) => `${host}:${port}`), db && `db ${db}`]
    const more = [password && `${username} ${password}`, primaryName, tls && 'tls']
    assert.equal(target && [...all, ...more].filter(Boolean).join(' '), expected, url)
  }
})

test('credentials come from the URL, from the settings, or both if they are the same', () => {
  const h = { REDIS_URL: 'redis://h' }
  const rows: [settings: Record<string, string>, username: string | undefined, password?: string][] = [
    [h, undefined],
    [{ REDIS_URL: 'redis://:p@h' }, undefined, 'p'],
    [{ REDIS_URL: 'redis://u:p@h' }, 'u', 'p'],
    [{ ...h, [PASSWORD]: 'p:/@' }, undefined, 'p:/@'],
    [{ ...h, [USER]: 'u', [PASSWORD]: 'p' }, 'u', 'p'],
    [{ REDIS_URL: 'redis://u@h', [PASSWORD]: 'p' }, 'u', 'p'],
    [{ REDIS_URL: 'redis://u:p%2F@h', [USER]: 'u', [PASSWORD]: 'p/' }, 'u', 'p/'],
    [{ REDIS_URL: 'redis://u:p@a,b', [USER]: '' }, 'u', 'p'],
    [{ REDIS_URL: 'redis://u:p@a,u:p@b' }, 'u', 'p'],
    [{ ...h, [`${PASSWORD}_FILE`]: file('password', 'from a file\n') }, undefined, 'from a file'],
  ]
  for (const [settings, username, password] of rows) {
    const target = targetOf(settings)
    assert.deepEqual([target.username, target.password], [username, password], JSON.stringify(settings))
  }
  const REDIS_URL = 'rediss+sentinel://u:p@[::1]:26379,b/main'
  const sentinel = targetOf({ REDIS_URL, [SENTINEL_USER]: 's', [SENTINEL_PASSWORD]: 't' })
  assert.deepEqual([sentinel.sentinelUsername, sentinel.sentinelPassword, sentinel.username], ['s', 't', 'u'])
  assert.equal(describeTarget(sentinel), 'Redis sentinel at [::1]:26379, b:26379 over TLS')
})

test('certificates and keys are read at the start', () => {
  const target = targetOf({ ...TLS, [CA]: ca, [CERT]: cert, [KEY]: key, POWGATE_REDIS_TLS_NAME: 'n' })
  const content = (path: string) => readFileSync(path, 'utf8')
  assert.deepEqual(target.tls, { ca: content(ca), cert: content(cert), key: content(key), name: 'n' })
  const bundle = file('bundle', `# two\n${content(ca)}\n${content(cert)}`)
  assert.deepEqual(problemsOf({ ...TLS, [CA]: bundle }), [])
})

test('each mistake is one line, which begins with the setting, and repeats no secret', () => {
  const locked = join(dir, 'locked.key')
  const lock = ['pkcs8', '-topk8', '-in', key, '-out', locked, '-passout', 'pass:secret']
  execFileSync('openssl', lock, { stdio: 'ignore' })
  const nonsense = file('nonsense', 'SECRET-TEXT is no certificate')
  const broken = file('broken', '-----BEGIN CERTIFICATE-----\nSECRET-TEXT\n-----END CERTIFICATE-----\n')
  const url = (text: string) => ({ REDIS_URL: text })
  const h = url('redis://h')
  const encoded = /^expected redis:.* write , # \/ \? % as %2C %23 %2F %3F %25$/
  const rows: [settings: Record<string, string>, setting: string, said: RegExp][] = [
    [url('redis://SECRET-TEXT:50%off@h'), 'REDIS_URL', /^expected redis:/],
    ...['1,SECRET', '1,2:SECRET', '1#SECRET', '1/SECRET', '1?SECRET', 'SECRET%'].map(
      (password): (typeof rows)[0] => [url(`redis://u:${password}-TEXT@h`), 'REDIS_URL', encoded],
    ),
    [url('redis://:SECRET-TEXT@a,:other@b'), 'REDIS_URL', /^expected/],
    [url('redis://h?tls=SECRET-TEXT'), 'REDIS_URL', /^expected/],
    [url('redis://:SECRET-TEXT@::1:6379'), 'REDIS_URL', /^expected/],
    [{ ...url('redis://u:p@h'), [USER]: 'v' }, USER, /^REDIS_URL names another user/],
    [{ ...url('redis://u:SECRET-TEXT@h'), [PASSWORD]: 'SECRET-TEXT2' }, PASSWORD, /^REDIS_URL has another/],
    [{ ...h, [USER]: 'u' }, PASSWORD, /^needed with a user/],
    [url('redis://u@h'), PASSWORD, /^needed with a user.*, any for a user with nopass/],
    [{ [PASSWORD]: 'SECRET-TEXT' }, PASSWORD, /^has no effect without REDIS_URL/],
    [{ [CA]: ca }, CA, /^has no effect without REDIS_URL/],
    [{ ...h, [SENTINEL_PASSWORD]: 'SECRET-TEXT' }, SENTINEL_PASSWORD, / unless REDIS_URL is redis\+sentinel/],
    [{ ...url('redis+sentinel://h/main'), [SENTINEL_USER]: 'u' }, SENTINEL_PASSWORD, /^needed with a user/],
    [{ ...h, [CA]: ca }, CA, /^REDIS_URL asks for no TLS; expected rediss/],
    [{ ...TLS, [CA]: join(dir, 'absent') }, CA, /absent: it does not exist$/],
    [{ ...TLS, [CA]: dir }, CA, /^cannot read .*: it is a directory$/],
    [{ ...TLS, [CA]: nonsense }, CA, /nonsense holds no valid certificate; expected/],
    [{ ...TLS, [CA]: broken }, CA, /broken holds no valid certificate; expected/],
    [{ ...TLS, [CA]: key }, CA, /client\.key holds no valid certificate; expected/],
    [{ ...TLS, [CERT]: cert, [KEY]: cert }, KEY, /client\.crt holds no valid key; expected a PEM file/],
    [{ ...TLS, [CERT]: cert, [KEY]: locked }, KEY, /locked\.key is encrypted; expected a key/],
    [{ ...TLS, [CERT]: cert }, KEY, /^needed with POWGATE_REDIS_TLS_CERT/],
    [{ ...TLS, [KEY]: key }, CERT, /^needed with POWGATE_REDIS_TLS_KEY/],
    [{ ...TLS, [CERT]: ca, [KEY]: key }, KEY, /^this is not the key of the certificate/],
  ]
  for (const [settings, setting, said] of rows) {
    const [line = '', ...others] = problemsOf(settings)
    assert.deepEqual(others, [], JSON.stringify(settings))
    assert.ok(line.startsWith(`${setting}: `), line)
    assert.match(line.slice(setting.length + 2), said)
    assert.ok(!/\n|SECRET-TEXT/.test(line), line)
  }
})
