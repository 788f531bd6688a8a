import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import type { FigureName, Row } from '../../bench/store/figures.ts'
import type { StoreReport } from '../../bench/store/report.ts'
import { OPERATIONS } from '../../bench/store/traffic.ts'
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
  const { rows } = JSON.parse(stdout) as StoreReport
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

  assert.match(stderr, /^1\/1 costs, redis, verification, batch 32: redisUs [\d.]+, /m)
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith('powgate-')),
    [],
  )
})
