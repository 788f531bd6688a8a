/**
 * `npm run bench [-- --filter TEXT]`: the steps of the verify path in process, each beside the plain node:crypto way
 * where there is one. Fixed inputs; figures of one run on one machine are to be compared, not kept.
 */

import { createHash, createHmac } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Bench } from 'tinybench'
import { parseAddress } from '../../src/domain/address.ts'
import { admitToLog, LogKind } from '../../src/domain/address-log.ts'
import { Hmac } from '../../src/domain/hmac.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintNonce, readNonce } from '../../src/domain/nonce.ts'
import { checkProof } from '../../src/domain/pow.ts'
import { scoreOf } from '../../src/domain/score.ts'
import { mintToken, readToken } from '../../src/domain/token.ts'
import { parseSolution } from '../../src/http/schemas.ts'
import { leadingZeroBits, proofInput } from '../../src/protocol/proof.ts'
import { renderTable } from '../support/table.ts'

const keyring = new Keyring(['a secret for the bench, long enough to be accepted'])
const address = parseAddress('203.0.113.7')!
const binding = { siteKey: 'site_0123456789ABCDEFabcdef', storeEpoch: 7, address }
const terms = { issuedAtMs: Date.UTC(2026, 0, 1), difficulty: 0 }
const nonce = mintNonce(keyring, terms, binding, 5)
const counter = 180_227
const claims = {
  issuedAtMs: terms.issuedAtMs,
  nonce,
  counter,
  siteTag: '0123456789',
  address,
  score: 0.9,
  storeEpoch: 7,
}
const token = mintToken(keyring, claims)
const body = Buffer.from(
  JSON.stringify({
    nonce,
    counter,
    solveTimeMs: 140,
    fingerprintHash: 'ab'.repeat(32),
    environment: { webdriver: false, noPlugins: false },
  }),
)
const signals = {
  environment: { webdriver: false },
  solveTimeMs: 140,
  elapsedMs: 200,
  difficulty: 18,
  fingerprintAddresses: 1,
  addressFailures: 0,
}
const hmacKey = Buffer.alloc(32, 7)
const hmac = new Hmac(hmacKey, 55)
const message = Buffer.alloc(55, 3)
message.copy(hmac.message)
const logRequest = { kind: LogKind.verification, siteTag: 1, addressLimit: 30, siteLimit: 20 }
const log = admitToLog(undefined, 1000, logRequest)
const logRecord = log.admitted ? Buffer.from(log.record) : Buffer.alloc(0)

const CASES: Readonly<Record<string, () => unknown>> = {
  'proof check': () => checkProof(nonce, counter, 0),
  'proof check, plain node:crypto': () =>
    leadingZeroBits(createHash('sha256').update(proofInput(nonce, counter)).digest()) >= 0,
  'HMAC of 55 bytes': () => hmac.sign(55, 'hex'),
  'HMAC of 55 bytes, plain node:crypto': () => createHmac('sha256', hmacKey).update(message).digest('hex'),
  'parse and validate a body': () => parseSolution(body, 'application/json'),
  'mint a nonce': () => mintNonce(keyring, terms, binding, 5),
  'read a nonce': () => readNonce(keyring, nonce, binding),
  score: () => scoreOf(signals),
  'mint a token': () => mintToken(keyring, claims),
  'read a token': () => readToken(keyring, token),
  'sliding window in memory': () => admitToLog(logRecord, 2000, logRequest),
  'whole verification, no store': verification,
}

function verification(): string {
  const parsed = parseSolution(body, 'application/json')
  if (!parsed.ok) throw new Error('the bench body is refused')
  const reading = readNonce(keyring, parsed.body.nonce, binding)
  if (reading.status !== 'genuine' || !checkProof(nonce, counter, reading.difficulty))
    throw new Error('refused')
  return mintToken(keyring, { ...claims, score: scoreOf(signals).score })
}

/** One step takes less than the clock can tell, so each sample is this many. */
const STEPS_PER_SAMPLE = 200

function sample(step: () => unknown): () => void {
  return () => {
    for (let count = 0; count < STEPS_PER_SAMPLE; count++) step()
  }
}

const { values } = parseArgs({
  options: { filter: { type: 'string', default: '' }, milliseconds: { type: 'string', default: '500' } },
})
const bench = new Bench({ time: Number(values.milliseconds), warmupTime: 100 })
for (const [name, step] of Object.entries(CASES))
  if (name.includes(values.filter)) bench.add(name, sample(step))
if (bench.tasks.length === 0) {
  process.stderr.write(`--filter: expected a part of one of: ${Object.keys(CASES).join(', ')}\n`)
  process.exit(2)
}
await bench.run()
const rows = bench.tasks.map(({ name, result }) => {
  if (result.state !== 'completed') throw new Error(`${name}: ${result.state}`)
  const ns = (result.latency.p50 * 1e6) / STEPS_PER_SAMPLE
  return [name, ns.toFixed(0), Math.round(1e9 / ns).toLocaleString('en')]
})
const columns = [
  { title: 'step', align: 'left' },
  { title: 'ns (median)', align: 'right' },
  { title: 'per second', align: 'right' },
] as const
process.stdout.write(`${renderTable(columns, rows)}\n`)
