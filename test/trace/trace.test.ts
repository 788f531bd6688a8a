/** Another policy on trial: as the shadow of a running service, and on its recorded trace. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { DEFAULT_POLICY } from '../../src/domain/policy.ts'
import type { Judgement } from '../../src/endpoints/service.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { createLogger } from '../../src/log/logger.ts'
import { Recorder } from '../../src/trace/recorder.ts'
import { Replay } from '../../src/trace/replay.ts'
import { Powgate } from '../cli/cli-process.ts'
import { Client, HONEST_ENVIRONMENT, solve } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { seedQuietHours } from '../harness/history.ts'
import { call, closeIdleConnections } from '../harness/http.ts'
import { PrometheusText } from '../harness/metrics.ts'
import { freePort } from '../harness/ports.ts'
import { TestService } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const dir = temporaryDir('trial-test')

const PATIENCE_MS = 60_000
const BASE = 16
/** Higher ones would take the test long. */
const MAX = 19
const TRACES = ['trace.0', 'trace.1'].map(name => join(dir, name))
const TRACE_FLAGS = TRACES.flatMap(path => ['--trace', path])
const BYTES_A_VISIT_MAX = 200
const SHADOW = { base: 17, addressBitsMax: 6, loadBitsMax: 0, networksV6: [] }
const FLAT = {
  ...{ addressBitsMax: 0, networkBitsMax: 0, networkBitsQuietMax: 0, loadBitsMax: 0 },
  ...{ loadBitsOnceMax: 0, failureBitsMax: 0, neighbourBitsMax: 0 },
}

let service: TestService
let powgate: Powgate
let siteKey: string
let metrics: PrometheusText
const nonces: string[] = []
/** Lines of the log about challenges. */
// biome-ignore lint/suspicious/noExplicitAny: as logged
let issued: any[]

function file(name: string, content: unknown): string {
  const path = join(dir, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

interface Visit {
  readonly from: string
  readonly work: 'right' | 'wrong' | 'none'
}

const right = (from: string): Visit => ({ from, work: 'right' })
/** One after the other, so that a slow machine has their proofs within a minute too. */
const OFFICE = Array.from({ length: 150 }, (_, index) => right(`203.0.113.${index % 20}`))
/** So many that either worker alone sees too many of them: counts of both are exchanged once a second only. */
const OWNER_OF_A_48 = Array.from({ length: 100 }, (_, net) => right(`2a00:1:2:${net}00::9`))
/** Strangers, the operator's own network, an address that asks too often, and one that fails. */
const OTHERS = Array.from({ length: 20 }, (_, round): Visit[] => [
  ...[`198.51.${round}.7`, `2001:db8:${round}::1`, `10.0.0.${round % 5}`].map(right),
  { from: '192.0.2.1', work: 'none' },
  { from: '192.0.2.2', work: round < 12 ? 'wrong' : 'none' },
]).flat()
const VISITS: readonly Visit[] = [...OFFICE, ...OWNER_OF_A_48, ...OTHERS]
const AT_ONCE = 5

async function visit(client: Client, { from, work }: Visit): Promise<void> {
  const headers = { 'X-Forwarded-For': from }
  const { status, json } = await client.challenge(siteKey, { headers })
  assert.equal(status, 200)
  const { nonce, difficulty } = json
  nonces.push(nonce)
  if (work === 'none') return
  const counter = solve(nonce, difficulty) + (work === 'wrong' ? 1 : 0)
  const fingerprintHash = createHash('sha256').update(from).digest('hex')
  const solution = { nonce, counter, fingerprintHash, environment: HONEST_ENVIRONMENT }
  const answer = await client.verify(siteKey, solution, { headers })
  assert.equal(answer.json.passed, work === 'right', answer.text)
}

before(async () => {
  const adminPort = String(await freePort())
  service = await TestService.start('redis', {
    POWGATE_TRUSTED_PROXIES: '127.0.0.1',
    POWGATE_TRACE_FILE: join(dir, 'trace'),
    POWGATE_ADMIN_PORT: adminPort,
    LOG_LEVEL: 'trace',
  })
  powgate = new Powgate(service.env)
  ;({ siteKey } = await service.createSite({ difficulty: { base: BASE, min: BASE, max: MAX } }))
  await seedQuietHours(service, siteKey)
  await powgate.text('site update', siteKey, '--shadow', file('shadow.json', SHADOW))
  const client = new Client(service.url)
  for (let index = 0; index < VISITS.length; index += AT_ONCE) {
    await Promise.all(VISITS.slice(index, index + AT_ONCE).map(each => visit(client, each)))
    closeIdleConnections() // the next connections may be another worker's
  }
  metrics = await eventually(PATIENCE_MS, 'all challenges are counted', async () => {
    const text = new PrometheusText((await call(`http://127.0.0.1:${adminPort}/metrics`)).text)
    return text.value('powgate_challenge_difficulty_count') === VISITS.length ? text : undefined
  })
  assert.equal(await service.end(), 0)
  const lines = service.output.split('\n').filter(line => line.includes('"challenge-issued"'))
  issued = lines.map(line => JSON.parse(line))
  assert.equal(issued.length, VISITS.length)
})
after(() => service.stop())

const replay = (policy: unknown) =>
  powgate.json('policy replay --policy', file('policy.json', policy), ...TRACE_FLAGS)

/** How many of each, as JSON has them. */
function countsOf(values: readonly number[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}

test('the live policy decides once more as it has decided, every time', async () => {
  const { challenges, accepted, failed, byDifference, different } = await replay({})
  assert.deepEqual(different, [])
  assert.deepEqual(byDifference, { 0: VISITS.length })
  const done = (work: Visit['work']) => VISITS.filter(each => each.work === work).length
  assert.deepEqual([challenges, accepted, failed], [VISITS.length, done('right'), done('wrong')])
  const bits = new Set(issued.map(({ difficulty }) => difficulty))
  assert.ok(bits.size > 3, [...bits].join())
})

test('every rule took part in what was recorded, and the networks of both families', () => {
  for (const rule of ['requests', 'networks', 'failures', 'load'])
    assert.ok(
      issued.some(({ climb }) => climb[rule] > 0),
      rule,
    )
  for (const prefix of [24, 48])
    assert.ok(
      issued.some(each => each.networkPrefix === prefix),
      String(prefix),
    )
})

test('another policy is told by its differences, and by what people would have waited', async () => {
  const { byDifference, different, delays } = await replay(FLAT)
  assert.deepEqual(byDifference, countsOf(issued.map(({ difficulty }) => BASE - difficulty)))
  assert.deepEqual(
    countsOf(different.map(({ recorded }: { recorded: number }) => recorded)),
    countsOf(issued.map(({ difficulty }) => difficulty).filter(bits => bits !== BASE)),
  )
  assert.ok(different.every((each: { siteKey: string }) => each.siteKey === siteKey))
  for (const { recorded, replayed, device } of delays) assert.ok(recorded > replayed && replayed > 0, device)
  const lowPhone = delays.find(({ device }: { device: string }) => device === 'low phone')
  assert.ok(Math.abs(lowPhone.replayed - (2 ** BASE / 2.5e6) * Math.exp(0.5 ** 2 / 2)) < 1e-3)
  const text = await powgate.text('policy replay --policy', file('flat.json', FLAT), ...TRACE_FLAGS)
  assert.match(
    text,
    /^350 challenges, 310 accepted proofs, 12 failed verifications\n\nBITS +CHALLENGES +SHARE\n-\d/,
  )
  assert.match(
    text,
    /\nthe same +\d+ +\d+\.\d %\n\nMean seconds .*\n\nDEVICE .*\nlow phone +12 % +0\.\d+ +0\.\d+\n/,
  )
})

test('a shadow decides as the replay does; its decisions are logged and counted, and no visitor sees them', async () => {
  const { byDifference } = await replay(SHADOW)
  const more = issued.map(({ difficulty, shadowDifficulty }) => shadowDifficulty - difficulty)
  assert.deepEqual(byDifference, countsOf(more))
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  const expected = { harder: more.filter(bits => bits > 0), easier: more.filter(bits => bits < 0) }
  for (const [verdict, bits] of Object.entries(expected)) {
    assert.ok(bits.length > 0, verdict)
    assert.equal(metrics.value('powgate_shadow_challenges_total', { verdict }), bits.length)
    assert.equal(metrics.value('powgate_shadow_difficulty_total', { verdict }), Math.abs(sum(bits)))
  }
  const same = more.filter(bits => bits === 0).length
  assert.equal(metrics.value('powgate_shadow_challenges_total', { verdict: 'same' }), same)
})

test('explain tells every term with its numbers, and what the shadow would have asked for', async () => {
  const log = join(dir, 'service.log')
  writeFileSync(log, service.output)
  const story = (line: { nonce: string }) => powgate.text('explain', line.nonce, '--log', log)
  const ofRule = (rule: string) => issued.find(({ climb }) => climb[rule] > 0)
  const told = {
    requests: /\+\d {2}the address had asked for \d+ challenges of this site within a minute, of 30 it may\n/,
    networks:
      /\+\d {2}the \/\d\d around the address had [\d.]+ proofs accepted within about a minute, over its budget\n/,
    failures: /\+\d {2}it had failed \d+ verifications within a minute, and had 0 accepted within five\n/,
    load: /\+\d {2}sources that come again had [\d.]+ proofs a second .*, usually [\d.]+; it .*comes? again\n/,
  }
  for (const [rule, words] of Object.entries(told)) assert.match(await story(ofRule(rule)), words, rule)
  assert.match(await story(issued[0]), /\n {4}the site's shadow policy would have asked for 17 bits\n/)
})

test('a trace has no address, no nonce and no token, and is small', () => {
  const text = TRACES.map(path => readFileSync(path, 'utf8')).join('')
  for (const { from } of VISITS) {
    assert.ok(!text.includes(from), from)
  }
  for (const nonce of nonces) assert.ok(!text.includes(nonce) && !text.includes(nonce.slice(8)), nonce)
  assert.ok(!/[0-9a-f]{16}|\|/.test(text))
  const bytes = text.length / VISITS.length
  assert.ok(bytes <= BYTES_A_VISIT_MAX, `${bytes} bytes a visit`)
  for (const path of TRACES) assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('a site shows its shadow, and loses it on request', async () => {
  assert.deepEqual((await powgate.json('site show', siteKey)).shadow, SHADOW)
  assert.match(await powgate.text('site show', siteKey), /shadow +\{"base":17,/)
  const exported = await powgate.text('site export', siteKey)
  assert.deepEqual(JSON.parse(exported).sites[0].shadow, SHADOW)
  assert.equal('shadow' in (await powgate.json(`site update ${siteKey} --no-shadow`)), false)
})

test('all mistakes of a policy are listed, each with its name and what was expected', async () => {
  const wrong = {
    base: 15,
    quietShare: 1,
    addressBitMax: 3,
    loadBitsMax: '4',
    networksV4: [{ prefixBits: 22 }],
  }
  const run = await powgate.run('site update', siteKey, '--shadow', file('wrong.json', wrong))
  assert.deepEqual([run.code, run.out], [1, ''])
  assert.deepEqual([...run.problems].sort(), [
    '--shadow: addressBitMax: there is no such field (did you mean addressBitsMax?); expected one of base, min, max, quietShare, addressBitsMax, failuresPerBit, failureBitsMax, neighbourBitsMax, loadBitsMax, loadBitsOnceMax, loadTolerated, usualRateMin, addressProofsFree, networkBitsMax, networkBitsQuietMax, historySpeaksFor, networksV4, networksV6',
    '--shadow: base: expected an integer from 16 to 28, got 15',
    '--shadow: loadBitsMax: expected an integer from 0 to 12, got "4"',
    '--shadow: networksV4[0].free: missing; expected a number from 1 to 1000000',
    '--shadow: networksV4[0].prefixBits: expected one of 24, 20, got 22',
    '--shadow: networksV4[0].slope: missing; expected a number from 0 to 1000000',
    '--shadow: quietShare: expected a number from 0 to 0.99, got 1',
  ])
  const list = await powgate.problem(1, 'site update', siteKey, '--shadow', file('list.json', []))
  assert.equal(list, '--shadow: the file: expected an object with numbers of a policy, got []')
  assert.match(await powgate.problem(1, 'site update', siteKey, '--shadow', dir), /^--shadow: cannot read /)
})

test('a file that is no trace', async () => {
  const policy = file('policy.json', {})
  const read = (path: string) => new Replay(DEFAULT_POLICY).read(path, readFileSync(path, 'utf8'))
  assert.match(
    await powgate.problem(1, `policy replay --policy ${policy} --trace ${policy}`),
    /policy\.json: expected a file of POWGATE_TRACE_FILE/,
  )
  for (const [path, why] of [
    [join(dir, 'none'), /^--trace: cannot read .*ENOENT/],
    ['/dev/zero', /^--trace: cannot read \/dev\/zero: longer than 67108864 bytes$/],
    [file('head.json', 'powgate-trace 2'), /head\.json: expected a file of POWGATE_TRACE_FILE/],
  ] as const)
    assert.match(await powgate.problem(1, `policy replay --policy ${policy} --trace ${path}`), why)
  const [head, ...lines] = readFileSync(TRACES[0]!, 'utf8').split('\n')
  const damaged = join(dir, 'damaged')
  for (const line of [
    'x',
    'a',
    'a 1 2',
    'c 9 5 16 1 0 0 0 0 1 0 0 16',
    'c 0 5 16 1 0 0 0 0 1 0 0 24 16',
    'f x',
    'f 1e300',
    'c 0 5 1e9 1 0 0 0 0 1 0 0 16',
    'c 0 5 16 1 0 0 0 0 1 0 0 1000',
    's site_x 0 16 28 30',
    's site_0123456789ABCDEFabcdef 0 16 1e9 30',
  ]) {
    writeFileSync(damaged, [head, line, ...lines].join('\n'))
    assert.throws(() => read(damaged), /damaged, line 2: not a line of a trace$/, line)
  }
})

test('a trace ends at its bound and says so once; the one before is kept', async () => {
  const path = join(dir, 'bounded')
  const said: string[] = []
  const log = createLogger('info', {}, [], { write: line => void said.push(line) })
  for (const bytesMax of [1000, 2000]) {
    const recorder = new Recorder(path, log, bytesMax)
    for (let visit = 0; visit < 500; visit++) recorder.judged({} as Exchange, { passed: true } as Judgement)
    await recorder.close()
  }
  const sizes = [`${path}.old`, path].map(name => statSync(name).size)
  assert.ok(sizes[0]! >= 1000 && sizes[0]! < 1100 && sizes[1]! >= 2000 && sizes[1]! < 2100, String(sizes))
  assert.equal(said.length, 2)
  assert.match(said[0]!, /the trace is full: nothing more is recorded/)
  const unwritable = new Recorder(join(dir, 'no-such-folder', 'trace'), log)
  await eventually(PATIENCE_MS, 'the failure is told', () => said.length === 3)
  assert.match(said[2]!, /the trace cannot be written \(ENOENT/)
  await unwritable.close()
})
