/** One counter has one spelling, wherever in a body it stands and whatever else has its name. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSolution } from '../../src/http/schemas.ts'

const REST = { nonce: '0aa0c378baeb39f66767749cb762bca6', fingerprintHash: 'a'.repeat(64), environment: {} }

const ROWS: readonly [fields: string, isTaken: boolean][] = [
  ['"counter":7', true],
  ['"counter" :\n7\t', true],
  ['"counter":0', true],
  ['"counter":-0', false],
  ['"counter":7.0', false],
  ['"counter":70e-1', false],
  ['"counter":7,"counter":7.0', false],
  ['"counter":7.0,"counter":7', true],
  ['"counter":7,"counter":5', true],
  ['"x":{"counter":7},"\\u0063ounter":7.0', false],
  ['"\\u0063ounter":7', true],
  ['"counter":7,"x":{"counter":7.0}', true],
  ['"x":["counter",7.0],"counter":7', true],
  ['"x":"\\"counter\\":7","counter":7.0', false],
  ['"counter":7,"x":"\\\\"', true],
  ['"é":1,"counter":7', true],
  ['"counter" :7.0,"x":{"counter":7}', false],
  ['"counter" :70e-1,"x":{"counter":7}', false],
  ['"counter": 7', true],
  ['"counter": 7.0', false],
  ['"x":"counter","counter":7', true],
  ['"x":"counter","counter":7.0', false],
  ['"x":{"y":"counter"},"counter":7e0', false],
  ['"x":"\\\\","counter":7.0', false],
  ['"x":[["}"]],"counter" : 7', true],
  ['"\\u0063ounter" : 7.0', false],
]

for (const [fields, isTaken] of ROWS) {
  test(`${fields} is ${isTaken ? 'taken' : 'refused'}`, () => {
    for (const body of [`{${fields},${inner(REST)}}`, `{${inner(REST)},${fields}}`])
      assert.equal(parseSolution(Buffer.from(body), 'application/json').ok, isTaken, body)
  })
}

function inner(value: object): string {
  return JSON.stringify(value).slice(1, -1)
}
