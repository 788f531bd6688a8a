import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aimsText, left, rangeNote, reportText, right, table } from '../../bench/report/report.ts'

test('a terminal shows tables in columns, then aims with the reason of a miss, then what was measured', () => {
  const rows = [
    ['/challenge', '10.5 (10.1-11.2)'],
    ['/verify', '20.5'],
  ]
  const cells = [
    [left('endpoint'), (row: string[]) => row[0]!],
    [right('us'), (row: string[]) => row[1]!],
  ] as const
  const aims = [
    { about: 'costs', isMet: true, found: '4 us' },
    { about: 'garbage', isMet: false, found: '9 bytes', because: 'hashes make them' },
  ]
  const parts = [
    table('Costs', cells, rows),
    table('No rows', cells, []),
    aimsText(aims),
    'What was measured.',
  ]
  assert.equal(
    reportText(parts),
    `Costs

endpoint                  us
----------  ----------------
/challenge  10.5 (10.1-11.2)
/verify                 20.5

aim: costs: met, 4 us
aim: garbage: NOT met, 9 bytes: hashes make them

What was measured.`,
  )
})

test('a range of more than three tenths is noted', () => {
  assert.equal(rangeNote({ median: 30, min: 28, max: 36 }), '')
  assert.equal(rangeNote({ median: 30, min: 28, max: 44 }), 'VARIES: the longest is 1.6 times the shortest')
})
