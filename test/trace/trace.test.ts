/** The trace of a running service, and other policies that decide once more what it holds. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Judged } from '../../src/domain/ending.ts'
import type { ObservedExchange } from '../../src/http/exchange-host.ts'
import { createLogger } from '../../src/log/logger.ts'
import { Recorder } from '../../src/trace/recorder.ts'
import { runBench } from '../bench/run-bench.ts'
import { wrongCounter } from '../contract/support.ts'
import { Client, HONEST_ENVIRONMENT, solve } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { seedQuietHours } from '../harness/history.ts'
import { closeIdleConnections } from '../harness/http.ts'
import { TestService } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const dir = temporaryDir('trace-test')

const PATIENCE_MS = 60_000
const BASE = 16
/** Higher ones would take the test long. */
const MAX = 19
const TRACES = ['trace.0', 'trace.1'].map(name => join(dir, name))
const BYTES_A_VISIT_MAX = 200
const FLAT = {
  ...{ addressBitsMax: 0, networkBitsMax: 0, networkBitsQuietMax: 0, siteBitsMax: 0 },
  ...{ siteBitsFirstMax: 0, failureBitsMax: 0, neighbourBitsMax: 0 },
}

let service: TestService
let siteKey: string
const nonces: string[] = []
/** Lines of the log about challenges. */
// biome-ignore lint/suspicious/noExplicitAny: as logged
let issued: any[]

function file(name: string, content: unknown): string {
  const path = join(dir, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

type Visit = { readonly from: string; readonly work: 'right' | 'wrong' | 'none' }

const right = (from: string): Visit => ({ from, work: 'right' })
/** One after the other, so that a slow machine has their proofs within a minute too. */
const OFFICE = Array.from({ length: 150 }, (_, index) => right(`203.0.113.${index % 20}`))
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
  const counter = work === 'wrong' ? wrongCounter(nonce) : solve(nonce, difficulty)
  const fingerprintHash = createHash('sha256').update(from).digest('hex')
  const solution = { nonce, counter, fingerprintHash, environment: HONEST_ENVIRONMENT }
  const answer = await client.verify(siteKey, solution, { headers })
  assert.equal(answer.json.passed, work === 'right', answer.text)
}

before(async () => {
  service = await TestService.start('redis', {
    POWGATE_TRUSTED_PROXIES: '127.0.0.1',
    POWGATE_TRACE_FILE: join(dir, 'trace'),
    LOG_LEVEL: 'trace',
  })
  await service.untilReady()
  ;({ siteKey } = await service.createSite({ difficulty: { base: BASE, min: BASE, max: MAX } }))
  await seedQuietHours(service, siteKey)
  const client = new Client(service.url)
  for (let index = 0; index < VISITS.length; index += AT_ONCE) {
    await Promise.all(VISITS.slice(index, index + AT_ONCE).map(each => visit(client, each)))
    closeIdleConnections() // the next connections may be another worker's
  }
  assert.equal(await service.end(), 0)
  const lines = service.output.split('\n').filter(line => line.includes('"challenge-issued"'))
  issued = lines.map(line => JSON.parse(line))
  assert.equal(issued.length, VISITS.length)
})
after(() => service.stop())

const replay = (policy: string, paths: readonly string[] = TRACES) =>
  runBench('effect', ...paths.flatMap(path => ['--trace', path]), '--policy', policy)

/** Challenges by the policy's bits less those recorded. */
function differencesIn(stdout: string): Record<string, number> {
  const rows = [...stdout.matchAll(/^([+-]?\d+) +(\d+) +[\d.]+ %$/gm)]
  return Object.fromEntries(rows.map(([, bits, count]) => [bits!, Number(count)]))
}

test('the same policy decides once more as it has decided, every time', async () => {
  const { stdout } = await replay(file('same.json', {}))
  assert.deepEqual(differencesIn(stdout), { 0: VISITS.length })
  assert.ok(new Set(issued.map(({ difficulty }) => difficulty)).size > 3)
})

test('every rule took part in what was recorded, and the networks of both families', () => {
  const rules = ['requests', 'networks', 'failures', 'site']
  assert.deepEqual(
    rules.filter(rule => !issued.some(({ climb }) => climb[rule] > 0)),
    [],
  )
  const prefixes = new Set(issued.map(({ networkPrefix }) => networkPrefix))
  assert.ok(prefixes.has(24) && prefixes.has(48), [...prefixes].join())
})

test('another policy is told by its differences, and by what people would have waited', async () => {
  const { stdout } = await replay(file('flat.json', FLAT))
  const counts: Record<string, number> = {}
  for (const { difficulty } of issued) counts[BASE - difficulty] = (counts[BASE - difficulty] ?? 0) + 1
  assert.deepEqual(differencesIn(stdout), counts)
  const seconds = (2 ** BASE / 2.5e6) * Math.exp(0.5 ** 2 / 2)
  assert.match(stdout, /^350 challenges\n\nbits more +challenges +share\n/)
  assert.match(stdout, new RegExp(`\nlow phone +0\\.\\d+ +${seconds.toPrecision(3)}\n`))
  const free = { networksV4: [{ prefixBits: 24, free: 1000 }], networksV6: [], siteBitsMax: 0 }
  const some = differencesIn((await replay(file('free.json', free))).stdout)
  assert.ok(some['0']! > counts['0']! && some['0']! < VISITS.length, JSON.stringify(some))
})

test('a trace has no address, no nonce and no token, and is small', () => {
  const text = TRACES.map(path => readFileSync(path, 'utf8')).join('')
  for (const { from } of VISITS) assert.ok(!text.includes(from), from)
  for (const nonce of nonces) assert.ok(!text.includes(nonce) && !text.includes(nonce.slice(8)), nonce)
  assert.ok(!/[0-9a-f]{16}|\|/.test(text))
  const bytes = text.length / VISITS.length
  assert.ok(bytes <= BYTES_A_VISIT_MAX, `${bytes} bytes a visit`)
  for (const path of TRACES) assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('all mistakes of a policy are listed, each with its name and what was expected', async () => {
  const networksV4 = [{ prefixBits: 22 }, { prefixBits: 24, slope: 'part' }]
  const wrong = { quietShare: -1, addressBitMax: 3, siteBitsMax: '4', slowMs: 1, networksV4, networksV6: 7 }
  const path = file('wrong.json', wrong)
  const problems = [
    'quietShare: expected a number from 0, got -1',
    'slowMs: a trace cannot show what it does',
    'networksV4[22].prefixBits: there is no such number (did you mean networksV4[24].prefixBits?)',
    'networksV4[24].slope: expected a number from 0, got "part"',
    'networksV6: expected [], got 7',
    'siteBitsMax: expected a number from 0, got "4"',
    'addressBitMax: there is no such number (did you mean addressBitsMax?)',
  ]
  await assert.rejects(replay(path), ({ stderr }) => {
    assert.deepEqual(stderr.trim().split('\n').sort(), problems.map(problem => `${path}: ${problem}`).sort())
    return true
  })
})

test('a file that is no trace is refused in one line', async () => {
  const policy = file('any.json', {})
  const refused = (path: string, why: RegExp) => assert.rejects(replay(policy, [path]), why)
  const [first, ...lines] = readFileSync(TRACES[0]!, 'utf8').split('\n')
  const wrong = ['x', 'a 1 2', 'f x', 's site_x 0 16 28', 'c 0 1 16', lines[1]!.replace('c 0', 'c 9')]
  const damaged = wrong.map((line, index) => {
    const path = join(dir, `damaged${index}`)
    writeFileSync(path, [first, line, ...lines].join('\n'))
    return refused(path, new RegExp(`${path}, line 2: not a line of a trace\n`))
  })
  await Promise.all([
    refused(join(dir, 'none'), /none: ENOENT/),
    refused(file('head.json', 'powgate-trace 2'), /head\.json: expected a file of POWGATE_TRACE_FILE/),
    assert.rejects(runBench('effect', '--policy', policy), /--trace: no challenge was recorded/),
    ...damaged,
  ])
})

test('a trace ends at its bound and says so once; the one before is kept', async () => {
  const path = join(dir, 'bounded')
  const said: string[] = []
  const log = createLogger('info', {}, [], { write: line => void said.push(line) })
  for (const bytesMax of [1000, 2000]) {
    const recorder = new Recorder(path, log, bytesMax)
    for (let visit = 0; visit < 500; visit++)
      recorder.ended({} as ObservedExchange, { kind: 'judged', passed: true } as Judged)
    await recorder.close()
  }
  const sizes = [`${path}.old`, path].map(name => statSync(name).size)
  assert.ok(sizes[0]! >= 1000 && sizes[0]! < 1100 && sizes[1]! >= 2000 && sizes[1]! < 2100, String(sizes))
  assert.equal(said.length, 2)
  assert.match(said[0]!, /the trace is full: nothing more is recorded/)
  const unwritable = new Recorder(join(dir, 'no-such-folder', 'trace'), log)
  await eventually(PATIENCE_MS, 'the failure is told', () => said.length === 3)
  assert.match(said[2]!, /the trace cannot be written \(it does not exist/)
  await unwritable.close()
})
