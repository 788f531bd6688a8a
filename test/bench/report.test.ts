import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reportText } from '../../bench/report/publish.ts'
import { aimsText, type Report, rangeNote } from '../../bench/report/report.ts'

const REPORT: Report = {
  title: 'A report',
  intro: 'What was measured.',
  parts: [
    {
      kind: 'table',
      title: 'Costs of the endpoints',
      columns: [
        { title: 'endpoint', align: 'left' },
        { title: 'us', align: 'right' },
      ],
      rows: [
        ['/challenge', '10.5 (10.1-11.2)'],
        ['/verify', '20.5'],
      ],
    },
    aimsText([
      { about: 'costs', isMet: true, found: '4 us' },
      { about: 'garbage', isMet: false, found: '9 bytes', because: 'hashes make them' },
    ]),
  ],
}

test('a terminal shows tables in columns, then aims with the reason of a miss, then what was measured', () => {
  assert.equal(
    reportText(REPORT),
    `Costs of the endpoints

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
