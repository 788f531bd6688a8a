/** Contract, section 2.2: every field of the body of POST /verify, wrong in every way; nothing else happens then. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Solution } from '../../src/protocol/wire.ts'
import { FLAGS } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { words } from '../harness/words.ts'
import { assertPassed, assertRefused, refusesAndSpendsNothing, type Subject } from './support.ts'

/** JSON text of a wrong value; undefined leaves the field out. */
type WrongValues = readonly (string | undefined)[]

const HEX_32 = '0123456789abcdef0123456789abcdef'
const HEX_64 = HEX_32 + HEX_32

const WRONG: Readonly<Record<string, WrongValues>> = {
  nonce: [
    undefined,
    'null',
    '5',
    '[]',
    '{}',
    '""',
    `"${HEX_32.toUpperCase()}"`,
    `"${HEX_32.slice(1)}"`,
    `"${HEX_32}0"`,
    `"${HEX_32.slice(1)}g"`,
    `"${HEX_32.slice(1)} "`,
    `"${HEX_32}\\n"`,
    `"${HEX_32}\\u0000"`,
    `" ${HEX_32.slice(1)}"`,
    `"${HEX_32.slice(0, -1)}F"`,
    `"${HEX_32.slice(1)}\uff10"`,
    `"0x${HEX_32.slice(2)}"`,
    `["${HEX_32}"]`,
  ],
  counter: [
    undefined,
    `5${'0'.repeat(400)}`,
    ...words(
      'null true [] [5] {} {"valueOf":5} "5" "5e0" "" -1 1.5 -0 -0.0',
      '9007199254740992 9007199254740993 18446744073709551621 1e999',
      '-1e999',
    ),
  ],
  solveTimeMs: ['null', '-1', '-0.5', '"1"', 'true', '[]', '{}', '1e999'],
  fingerprintHash: [
    undefined,
    'null',
    '5',
    '[]',
    '""',
    `"${HEX_64.slice(1)}"`,
    `"${HEX_64}0"`,
    `"${HEX_64.slice(1)}g"`,
    `"${HEX_64}\\n"`,
  ],
  environment: ['null', '[]', '[true]', '"webdriver"', 'true', '0'],
}

const WRONG_FLAGS = ['null', '1', '0', '"true"', '[]', '{}']

/** Values at the bounds, which the body's form allows; whether they verify is another matter. */
const ALLOWED: readonly [field: keyof Solution, json: string][] = [
  ['counter', '0'],
  ['counter', '9007199254740991'],
  ['counter', '7.0'],
  ['counter', '70e-1'],
  ['solveTimeMs', '0'],
  ['solveTimeMs', '0.25'],
  ['solveTimeMs', '1e15'],
  ['fingerprintHash', `"${HEX_64.toUpperCase()}"`],
  ['environment', '{}'],
  ['environment', '{"webdriver":false}'],
  ['environment', '{"somethingNew":[1,{}]}'],
]

function withField(solution: Solution, field: string, json: string | undefined): string {
  const rest = Object.entries(solution).filter(([name]) => name !== field)
  const text = JSON.stringify(Object.fromEntries(rest))
  return json === undefined ? text : `${text.slice(0, -1)},"${field}":${json}}`
}

interface WrongField {
  readonly field: string
  readonly json: string | undefined
  /** How the refusal names it. */
  readonly name: string
}

const WRONG_FIELDS: readonly WrongField[] = [
  ...Object.entries(WRONG).flatMap(([field, values]) => values.map(json => ({ field, json, name: field }))),
  ...FLAGS.flatMap(flag =>
    WRONG_FLAGS.map(json => ({
      field: 'environment',
      json: `{"${flag}":${json}}`,
      name: `environment.${flag}`,
    })),
  ),
]

export function solutionFieldTests(subject: Subject): void {
  refusesAndSpendsNothing(
    subject,
    WRONG_FIELDS,
    ({ name, json }) => `§2.2 ${name}: ${json ?? 'missing'} gives 400 and names the field`,
    async ({ field, json, name }, solution, from) => {
      const body = withField(solution, field, json)
      const answer = await subject.client.verify(subject.site.siteKey, body, { from })
      assertRefused(answer, 400, 'invalid-body')
      assert.ok(answer.json.error.includes(name), `"${answer.json.error}" does not name ${name}`)
    },
  )

  for (const [field, json] of ALLOWED) {
    test(`§2.2 ${field}: ${json} is of the right form`, async () => {
      const from = freshAddress()
      const solution = await subject.client.solved(subject.site.siteKey, { from })
      const body = withField(solution, field, json)
      const answer = await subject.client.verify(subject.site.siteKey, body, { from })
      assert.equal(answer.status, 200, answer.text)
    })
  }

  test('§2.2, decided: fields that are not in the table are ignored', async () => {
    const from = freshAddress()
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    const body = { ...solution, extra: 1, token: null, passed: true, constructor: { prototype: {} } }
    assertPassed(await subject.client.verify(subject.site.siteKey, body, { from }))
  })
}
