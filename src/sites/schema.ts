/** The JSON Schema of export files (export-file.ts). In error messages, each `description` completes "expected ...". */

import { API_KEY_ID_PATTERN, SITE_KEY_PATTERN } from '../domain/site.ts'
import { FIELDS, type SiteField } from '../domain/site-fields.ts'
import type { Schema } from '../domain/value-forms.ts'
import { FILE_FORMAT, FILE_VERSION } from './export-file.ts'
import { SITE_KEY_RULE } from './rules.ts'

function fieldSchema({ form, about, fallback, defaultWords }: SiteField): Schema {
  if (fallback !== undefined) return { ...form.schema, title: about, default: fallback }
  return { ...form.schema, title: defaultWords === undefined ? about : `${about} (default: ${defaultWords})` }
}

function objectSchema(
  properties: Readonly<Record<string, Schema>>,
  annotations: Schema & { readonly required?: readonly string[] },
): Schema {
  return { type: 'object', ...annotations, properties, additionalProperties: false }
}

/** A member of a site is a field, or an object of fields, such as `limits`. */
function memberSchema(name: string): Schema {
  const fields = FIELDS.filter(({ path }) => path[0] === name)
  const [first] = fields
  if (first?.name === name) return fieldSchema(first)
  const parts = fields.map(field => [field.path[1]!, fieldSchema(field)] as const)
  const description = `an object with ${parts.map(([part]) => part).join(', ')}`
  return objectSchema(Object.fromEntries(parts), { description })
}

const MEMBERS = new Set(FIELDS.map(({ path }) => path[0]))

const SITE_KEY: Schema = {
  type: 'string',
  title: 'Key of the site; without it the site is known by its name',
  description: SITE_KEY_RULE.expects,
  pattern: SITE_KEY_PATTERN,
}

const KEYS: Schema = {
  type: 'array',
  items: { ...FIELDS.find(({ name }) => name === 'name')!.form.schema, description: 'a name' },
  title: 'Names of API keys; where no valid key has the name, one is made, and printed once',
  uniqueItems: true,
  description: 'a list of names',
}

const MILLISECONDS = 'a time in Unix milliseconds'
/** The last time that a Date has. Nanoseconds, for example, are above it. */
const TIME_MAX = 8.64e15
const TIME: Schema = { type: 'integer', minimum: 0, maximum: TIME_MAX, description: MILLISECONDS }
const TIME_OR_NEVER: Schema = { ...TIME, type: ['integer', 'null'], description: `${MILLISECONDS}, or null` }

const SITE = objectSchema(
  {
    siteKey: SITE_KEY,
    ...Object.fromEntries([...MEMBERS].map(name => [name, memberSchema(name)])),
    keys: KEYS,
    createdAt: TIME,
    updatedAt: TIME,
  },
  { title: 'Site', description: 'an object that describes a site', required: ['name'] },
)

const API_KEY = objectSchema(
  {
    id: { type: 'string', pattern: `^${API_KEY_ID_PATTERN}$`, description: '8 letters or digits' },
    siteKey: SITE_KEY,
    name: { type: 'string', description: 'a name' },
    secretSha256: {
      type: 'string',
      pattern: '^[0-9a-f]{64}$',
      description: 'SHA-256 of the whole API key, in 64 hexadecimal digits',
    },
    createdAt: TIME,
    expiresAt: TIME_OR_NEVER,
    revokedAt: TIME_OR_NEVER,
    updatedAt: TIME,
  },
  { description: 'an object that describes an API key', required: ['id', 'siteKey', 'secretSha256'] },
)

export const EXPORT_FILE_SCHEMA = objectSchema(
  {
    format: { const: FILE_FORMAT, description: JSON.stringify(FILE_FORMAT) },
    version: { const: FILE_VERSION, description: String(FILE_VERSION) },
    sites: { type: 'array', items: SITE, description: 'a list of sites' },
    apiKeys: {
      type: 'array',
      items: API_KEY,
      title: 'API keys by their hashes; those that the store lacks, or has older copies of, are written',
      description: 'a list of API keys',
    },
    deletedSites: {
      type: 'array',
      items: objectSchema(
        { siteKey: SITE_KEY, updatedAt: TIME },
        { description: 'an object with siteKey and updatedAt', required: ['siteKey', 'updatedAt'] },
      ),
      title: 'Deleted sites; those of which the store has a copy from before updatedAt are deleted again',
      description: 'a list of deleted sites',
    },
    $schema: { type: 'string', title: 'For editors', description: 'an address' },
  },
  {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Sites of powgate',
    description: 'an object with format, version and sites',
    required: ['format', 'version', 'sites'],
  },
)
