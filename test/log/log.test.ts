/** The log: no secret comes out of it, whatever errors or mistakes in code bring (Redis' own errors too); and its text for people. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import { Keyring } from '../../src/domain/keyring.ts'
import { newApiKey } from '../../src/domain/site.ts'
import { mintToken } from '../../src/domain/token.ts'
import { EventLog } from '../../src/log/event-log.ts'
import { createLogger, scrubToo } from '../../src/log/logger.ts'
import { scrubByForm } from '../../src/log/redaction.ts'
import { RedisServer } from '../harness/redis.ts'

const PASSWORD = `a "password" of Redis\\${randomBytes(9).toString('base64')}`
const MASTER_SECRET = randomBytes(32).toString('base64')
const API_KEY = newApiKey(randomBytes(96))
const ADDRESS = '0123456789abcdef'
const NONCE = '0a9ea5676dca3c365c82dc2027a8a63e'
const TOKEN = mintToken(new Keyring([MASTER_SECRET]), {
  issuedAtMs: 1_795_289_826_041,
  lifetimes: { challengeLifetimeMs: 120_000, tokenLifetimeMs: 300_000 },
  nonce: NONCE,
  counter: 340_486,
  siteTag: '0123456789',
  address: ADDRESS,
  score: 0.5,
  storeEpoch: 1,
})
/** What must not come out: of an API key its secret, of a token its signature. */
const SECRETS = [PASSWORD, MASTER_SECRET, API_KEY.slice(12), TOKEN.slice(-43)]

const redis = await RedisServer.start(['--requirepass', PASSWORD])
const client = new Redis({ ...redis.clientOptions, password: PASSWORD, maxRetriesPerRequest: 0 })
after(() => client.disconnect())

/** The lines that are written while `write` runs. */
function linesOf(level: string, write: (log: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = []
  write(createLogger(level, {}, [PASSWORD, MASTER_SECRET], { write: line => void lines.push(line) }))
  return lines
}

function assertClean(lines: readonly string[]): void {
  assert.ok(lines.length > 0)
  for (const line of lines) {
    assert.doesNotThrow(() => JSON.parse(line), line)
    assert.ok(Buffer.byteLength(line) < 4096, `${line.length} characters`)
    for (const secret of SECRETS)
      for (const text of [secret, JSON.stringify(secret).slice(1, -1)]) assert.ok(!line.includes(text), line)
  }
}

/** An error of Redis: a value has another type than a command needs, whose arguments are a token and an API key. */
async function wrongType(): Promise<Error> {
  await client.set('text', 'x')
  return client.hset('text', TOKEN, API_KEY).then(
    () => assert.fail('the call should have failed'),
    error => error,
  )
}

test('an error of Redis whose arguments are keys and tokens is logged with its text and stack, without these', async () => {
  const error = await wrongType()
  assert.match(error.message, /WRONGTYPE/)
  assert.ok(JSON.stringify(error).includes(API_KEY), 'the error itself carries its arguments')
  // Ways in which careless code could pass an error with secrets to the log.
  const lines = linesOf('trace', log => {
    log.error(error)
    log.error({ err: error }, 'it failed')
    log.error({ error }, 'it failed')
    log.error({ cause: { inner: error } }, 'it failed')
    log.error(`it failed: ${error.message} ${error.stack}`)
    log.error({ err: new Error('it failed', { cause: error }) })
  })
  assertClean(lines)
  assert.match(lines[0]!, /WRONGTYPE/)
  assert.match(lines[1]!, /log\.test|ioredis|redis-parser/, 'the stack is there')
})

test('a fault while a request is worked on is logged with its request, 60 a minute; its answer and an overload are not', async () => {
  const error = await wrongType()
  const exchange = { requestId: 'r-1', siteKey: 'site_0', address: ADDRESS, origin: '', receivedAtMs: 0 }
  const lines = linesOf('info', log => {
    const events = new EventLog(log, 0, 0, true)
    for (let count = 0; count < 80; count++) events.faulted(exchange, 'verify', error)
    for (const reason of ['internal', 'overloaded'] as const)
      events.ended(exchange, 'verify', { kind: 'refused', refusal: { reason } })
    events.close()
  })
  assertClean(lines)
  const faults = lines.map(line => JSON.parse(line))
  const summary = faults.pop()
  assert.equal(faults.length, 60)
  assert.deepEqual([summary.event, summary.counts], ['unlogged', { fault: 20 }])
  for (const { event, level, requestId, site, part, err } of faults) {
    assert.deepEqual([event, level, requestId, site, part], ['fault', 'error', 'r-1', 'site_0', 'verify'])
    assert.deepEqual(Object.keys(err).sort(), ['message', 'stack', 'type'])
  }
})

test('a request gets no id for a line that the level leaves out, because its answer would carry an id that no line has', () => {
  const exchange = { siteKey: 'site_0', address: ADDRESS, origin: '', receivedAtMs: 0 }
  const requestId = () => assert.fail('an id was made')
  linesOf('fatal', log => {
    const events = new EventLog(log, 1, 0, true)
    const asked = Object.defineProperty({ ...exchange, requestId: '' }, 'requestId', { get: requestId })
    events.faulted(asked, 'verify', 'a fault')
    events.close()
  })
})

test('fields such as password and token are withheld by name, whatever they hold', () => {
  const short = 'hunter2' // of no form that could be recognised
  const lines = linesOf('trace', log => {
    log.info({ authorization: short, password: short, token: short, apiKey: short })
    log.info({ request: { headers: { authorization: short } }, config: { redis: { password: short } } })
    log.info({ command: { name: 'auth', args: [short] }, secrets: [short] })
  })
  assert.equal(lines.length, 3)
  for (const line of lines) assert.ok(!line.includes(short) && line.includes('[withheld]'), line)
})

test('a secret is removed from a text, a URL, an object, and a long message that is cut within the secret', () => {
  const lines = linesOf('trace', log => {
    for (const secret of [TOKEN, API_KEY, PASSWORD, MASTER_SECRET]) {
      log.info(secret)
      log.info({ anything: { deep: [{ down: `before ${secret} after` }] } })
      log.error(new Error(`${'x'.repeat(290)}${secret}`)) // cut after 300 characters
    }
    log.info(`https://page.example/?t=${encodeURIComponent(TOKEN)}`)
    log.info({ url: `rediss://user:${encodeURIComponent(PASSWORD)}@redis.example:6380/1` })
  })
  assertClean(lines)
  for (const line of lines) assert.ok(!line.includes(encodeURIComponent(TOKEN).slice(-40)), line)
  assert.match(lines.at(-1)!, /rediss:\/\/\[withheld\]@redis\.example:6380\/1/)
})

test('a secret that a reload brings is removed too', () => {
  const lines = linesOf('info', log => {
    scrubToo(['the next secret'])
    log.info(`${PASSWORD} the next secret`)
  })
  assertClean(lines)
  assert.doesNotMatch(lines[0]!, /next/)
})

test('a secret that was removed leaves the id of the API key, or the nonce of the token', () => {
  assert.equal(scrubByForm(`key ${API_KEY}.`), `key ${API_KEY.slice(0, 12)}[withheld].`)
  assert.equal(scrubByForm(`token "${TOKEN}"`), `token "[token of ${NONCE}]"`)
  assert.equal(scrubByForm('redis://:one@two@host:6379/0'), 'redis://[withheld]@host:6379/0')
  for (const text of ['redis://127.0.0.1:6379/0', 'mail me@example.com about http://127.0.0.1/x'])
    assert.equal(scrubByForm(text), text)
})

test('the format text has time, level, message and fields, and loses no line at an exit', () => {
  const program = `
    import { createLogger, logDestination } from './src/log/logger.ts'
    const destination = await logDestination('text')
    const log = createLogger('info', { worker: 2 }, [process.env.PASSWORD], destination)
    log.info({ port: 8080 }, 'listening')
    log.fatal('gone with ' + process.env.PASSWORD)
    process.exit(1)`
  const { PATH, HOME } = process.env
  const args = ['--import', 'tsx', '--input-type=module', '-e', program]
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: new URL('../..', import.meta.url).pathname,
    env: { PATH, HOME, PASSWORD: MASTER_SECRET },
    encoding: 'utf8',
    timeout: 60_000,
  })
  assert.equal(stderr, '')
  assert.ok(!stdout.includes(MASTER_SECRET), stdout)
  const lines = stdout.trimEnd().split('\n')
  assert.equal(lines.length, 2)
  const lineOf = (level: string) => lines.find(line => line.includes(level))! // such an exit may change their order
  assert.match(lineOf('INFO'), /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: listening \{"worker":2,"port":8080\}$/)
  assert.match(lineOf('FATAL'), /^\[[\d:.]+\] FATAL: gone with \S/)
})
