import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { checkKept, drive, driveAll, HOLLOW_STORE } from '../../bench/store/drive.ts'
import { type FigureName, type Row, rowsOf } from '../../bench/store/figures.ts'
import { withSubject } from '../../bench/store/parts.ts'
import { figuresOf, reportOf, type StoreReport } from '../../bench/store/report.ts'
import { buildVisits, OPERATIONS } from '../../bench/store/traffic.ts'
import type { RequestStore } from '../../src/store/store.ts'
import { STORE_KINDS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { runBench } from './run-bench.ts'

const folder = temporaryDir('test')

const BENCH = { name: 'store', tmp: folder }

/** Any of these may be zero where so little is measured. */
const MAY_BE_ZERO: readonly FigureName[] = ['othersBusy', 'expiredKeys', 'callsOver1Ms']
const OF_PASS = {
  redis: 'redisUs scriptUs commands operationsPerCall bytesIn bytesOut clientUs othersBusy',
  embedded: 'storeUs wallUs clientUs longestTurnMs othersBusy',
}

function expectedFigures({ part, store, of }: Row): string {
  switch (part) {
    case 'costs':
      return of === 'all in turn' ? 'longestCallUs callsOver1Ms' : `${OF_PASS[store]} driverUs`
    case 'growth':
      return `${OF_PASS[store]} cpuTimesFewest timeTimesFewest`
    case 'memory':
      return 'bytesPerAddress keysPerAddress'
  }
}

function checkFigures(row: Row): void {
  const name = [row.part, row.store, row.of, row.batch, row.addresses].join(' ')
  for (const figure of expectedFigures(row).split(' ') as FigureName[]) {
    assert.ok(figure in row.figures, `${name}: ${figure} is missing`)
  }
  for (const [figure, spread] of Object.entries(row.figures) as [FigureName, Row['figures']['redisUs']][]) {
    for (const value of [spread!.min, spread!.median, spread!.max]) {
      assert.ok(Number.isFinite(value), `${name}: ${figure} is ${value}`)
      assert.ok(value > 0 || (value === 0 && MAY_BE_ZERO.includes(figure)), `${name}: ${figure} is ${value}`)
    }
  }
}

const SMALL = ['--repeat', '1', '--operations', '640', '--json']

test('a short run measures every part on both stores, and leaves nothing behind', async () => {
  const { stdout, stderr } = await runBench(BENCH, ...SMALL, '--max-addresses', '1000')
  const { rows, aims } = JSON.parse(stdout) as StoreReport
  const labels = rows.map(({ part, store, of, batch = '', addresses = '' }) =>
    [part, store, of, batch, addresses].join(' ').trim(),
  )
  const expected = [
    'costs redis all in turn 32',
    ...STORE_KINDS.flatMap(store => [
      ...OPERATIONS.map(operation => `costs ${store} ${operation} 32`),
      `memory ${store} one challenge, one verification  1000`,
      `memory ${store} at all limits  1000`,
      `growth ${store} challenge 32 1000`,
      `growth ${store} verification 32 1000`,
    ]),
  ]
  assert.deepEqual(labels.toSorted(), expected.toSorted())
  for (const row of rows) checkFigures(row)

  for (const { part, store, of, batch, figures } of rows) {
    if (part !== 'costs' || store !== 'redis' || of === 'all in turn') continue
    const perCall = figures.operationsPerCall!
    // The store probes Redis four times a second, mostly within a call that is there anyway. The fewest calls are five.
    assert.ok(perCall.median > batch! * 0.5 && perCall.median <= batch! * 1.01, `${store} ${of} of ${batch}`)
  }
  const [typical, atLimits] = rows.flatMap(({ figures }) => figures.bytesPerAddress?.median ?? [])
  assert.ok(typical! > 20 && atLimits! > 20, `${typical} ${atLimits}`)
  assert.equal(aims.length, 4)
  for (const { found, isMet } of aims) assert.ok(Number(found) > 0 && typeof isMet === 'boolean')
  assert.match(stderr, /^1\/1 costs, redis, verification, batch 32: redisUs [\d.]+, /m)
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith('powgate-')),
    [],
  )
})

test('growth is judged against the fewest addresses', async () => {
  const { stdout } = await runBench(BENCH, ...SMALL, '--only', 'growth', '--max-addresses', '10000')
  const { rows, aims } = JSON.parse(stdout) as StoreReport
  for (const row of rows) checkFigures(row)
  for (const store of STORE_KINDS) {
    const grown = rows.filter(row => row.store === store)
    const sizes = grown.map(({ of, addresses }) => `${of} ${addresses}`)
    assert.deepEqual(sizes, ['challenge 1000', 'verification 1000', 'challenge 10000', 'verification 10000'])
    for (const { addresses, figures } of grown) {
      if (addresses === 1000) assert.equal(figures.cpuTimesFewest!.median, 1)
    }
  }
  assert.equal(aims.length, 2)
})

test('a turn of the driver is a turn of the event loop, each request is sent once', async () => {
  const visits = buildVisits(HOLLOW_STORE, 0, 100)
  const asked: string[] = []
  const turns: number[] = []
  let inTurn = 0
  const store: RequestStore = {
    ...HOLLOW_STORE,
    admitChallenge: (request, done) => {
      asked.push(request.addressKey)
      if (inTurn++ === 0) {
        setImmediate(() => {
          turns.push(inTurn)
          inTurn = 0
        })
      }
      HOLLOW_STORE.admitChallenge(request, done)
    },
  }
  const result = await drive(store, 'challenge', visits, 32)
  assert.deepEqual(turns, [32, 32, 32, 4])
  assert.deepEqual(
    asked,
    visits.challenge.map(({ addressKey }) => addressKey),
  )
  assert.equal(new Set(asked).size, 100)
  assert.equal(result.operations, 100)
  assert.ok(result.cpuMs > 0 && result.elapsedMs >= result.longestTurnMs && result.longestTurnMs > 0)
})

test('an answer that is not the expected one fails the bench', async () => {
  const visits = buildVisits(HOLLOW_STORE, 0, 10)
  const unavailable: RequestStore = {
    ...HOLLOW_STORE,
    admitChallenge: (_, done) => done({ status: 'unavailable' }),
  }
  await assert.rejects(drive(unavailable, 'challenge', visits, 4), /a challenge was answered .*unavailable/)
  await assert.rejects(checkKept(HOLLOW_STORE, visits), /what was spent before was answered .*"spent"/)
  for (const kind of STORE_KINDS) {
    await withSubject(kind, async ({ store }) => {
      const genuine = buildVisits(store, 0, 10)
      await assert.rejects(checkKept(store, { ...genuine, verification: genuine.verification.slice(1) }))
      await driveAll(store, genuine, 4, ['challenge'])
      // The check above has spent the second nonce.
      await assert.rejects(drive(store, 'verification', genuine, 4), /a verification was answered .*"used"/)
      await checkKept(store, genuine)
    })
  }
})

test('no nonce comes twice, and an aim that is missed is called so', () => {
  const nonces = buildVisits(HOLLOW_STORE, 5, 20_000).verification.map(({ spend }) => spend!.nonce)
  assert.equal(new Set(nonces).size, 20_000)
  assert.ok(nonces.every(nonce => /^[0-9a-f]{32}$/.test(nonce)))
  const row = { part: 'costs', store: 'redis', batch: 32 } as const
  const rows = rowsOf([
    { row: { ...row, of: 'challenge' }, sample: { redisUs: 4, expiredKeys: 0 } },
    { row: { ...row, of: 'verification' }, sample: { redisUs: 9, expiredKeys: 7 } },
    { row: { ...row, of: 'challenge' }, sample: { redisUs: 6, expiredKeys: 0 } },
  ])
  assert.deepEqual(rows[0]!.figures.redisUs, { median: 5, min: 4, max: 6 })
  const report = figuresOf(rows, { repeat: 2, operations: 100, batch: 32, maxAddresses: 1000 })
  const aims = report.aims.map(({ isMet, found }) => `${found} ${isMet}`)
  assert.deepEqual(aims, ['5.00 true', '9.00 false'])
  const text = reportOf(report)
  assert.match(text, /a verification at most 5 us: NOT met, 9\.00/)
  assert.match(text, /\nverification .*7 keys had expired/)
})
