/** The service compiles its schemas without a look at the meta-schema, which takes long. Here it is taken. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { SETTINGS } from '../../src/config/settings.ts'
import { RedemptionSchema, SolutionSchema } from '../../src/http/schemas.ts'
import { SiteverifySchema } from '../../src/http/siteverify.ts'
import { SITES_FILE_SCHEMA } from '../../src/sites/schema.ts'

const settings = Object.entries(SETTINGS).map(([name, { schema }]) => [name, schema] as const)
const ajv = new Ajv({ strict: true })

for (const [name, schema] of [
  ['SolutionSchema', SolutionSchema],
  ['RedemptionSchema', RedemptionSchema],
  ['SiteverifySchema', SiteverifySchema],
  ['SITES_FILE_SCHEMA', SITES_FILE_SCHEMA],
  ...settings,
] as const) {
  test(`${name} is a schema`, () => {
    assert.equal(ajv.validateSchema(schema), true, ajv.errorsText(ajv.errors))
  })
}

test('what is no schema is found', () => {
  assert.equal(ajv.validateSchema({ type: 'object', properties: { value: { minimum: 'zero' } } }), false)
})
