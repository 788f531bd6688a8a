/** Files of sites (`powgate apply`): what valid content means, the line for each mistake, and how a file changes the sites there are. */

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { newSiteKey, SITE_DEFAULTS, type SiteRecord } from '../../src/domain/site.ts'
import type { SiteSettings } from '../../src/domain/site-fields.ts'
import { TEST_KEYS } from '../../src/domain/test-keys.ts'
import { diffWithFile, exportFile, type SiteEntry } from '../../src/sites/export-file.ts'
import { parseExportFile } from '../../src/sites/parse-export-file.ts'
import { EXPORT_FILE_SCHEMA } from '../../src/sites/schema.ts'
import { siteRecord } from '../../src/sites/sites.ts'

const KEY = 'site_0123456789ABCDEFabcdef'

const fileOf = (sites: unknown, more: object = {}): Buffer =>
  Buffer.from(JSON.stringify({ format: 'powgate-sites', version: 1, sites, ...more }))

function entriesOf(bytes: Uint8Array): readonly SiteEntry[] {
  const parsed = parseExportFile(bytes)
  assert.ok('value' in parsed, JSON.stringify(parsed))
  return parsed.value.sites
}

function problemsOf(bytes: Uint8Array): readonly string[] {
  const parsed = parseExportFile(bytes)
  assert.ok('problems' in parsed, 'the file was taken')
  return parsed.problems
}

const anyKey = () => newSiteKey(randomBytes(96))
let created = 0

function site(change: Partial<SiteRecord> = {}): SiteRecord {
  const identity = { siteKey: anyKey(), createdAt: created++ }
  return { ...siteRecord({ name: 'shop' }, identity, 0), ...change }
}

const NOW = 1_000_000
/** `diffWithFile` is not asked for a dry run, and sites that the file does not name stay. */
const OPTIONS = ['stay', false, NOW] as const

test('what an entry does not say is default, in a group too', () => {
  const groups = { difficulty: { base: 20 }, ipRules: { block: [] } }
  const [entry] = entriesOf(fileOf([{ name: ' shop ', keys: ['b ', 'b'], ...groups }]))
  const difficulty = { base: 20, min: 16, max: 28 }
  assert.deepEqual(entry, { ...SITE_DEFAULTS, name: 'shop', difficulty, keys: ['b'] })
})

test('a byte order mark, spaces, and a $schema for editors are no mistakes', () => {
  const file = fileOf([{ name: 'x' }], { $schema: './sites.schema.json' })
  assert.equal(entriesOf(Buffer.concat([Buffer.from('\ufeff \n'), file, Buffer.from('\n\n')])).length, 1)
  assert.deepEqual(entriesOf(fileOf([])), [])
})

const NOT_FILES_OF_SITES: readonly [about: string, bytes: Buffer, line: RegExp][] = [
  ['empty', Buffer.from(''), /^the file is not JSON: /],
  ['no JSON', Buffer.from('sites:\n  - name: shop\n'), /^the file is not JSON: [^\n]+$/],
  ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), /^the file is not UTF-8$/],
  ['a list', Buffer.from('[]'), /^the file: expected an object with format, version and sites, got \[\]$/],
  ['another object', Buffer.from('{}'), /^format: missing; expected "powgate-sites"$/],
  ['another format', fileOf([], { format: 'sites' }), /^format: expected "powgate-sites", got "sites"$/],
  ['newer', fileOf([], { version: 2, more: 1 }), /^version: expected 1, got 2$/],
  ['no sites', fileOf(undefined), /^sites: missing; expected a list of sites$/],
  ['sites that are none', fileOf({ shop: {} }), /^sites: expected a list of sites, got \{"shop":\{\}\}$/],
  ['a typo', fileOf([], { site: [] }), /^site: .* \(did you mean sites\?\); expected one of format, version/],
]

test('a file that is not one of sites is refused in one line', () => {
  for (const [about, bytes, line] of NOT_FILES_OF_SITES) {
    const problems = problemsOf(bytes)
    assert.equal(problems.length, 1, `${about}: ${problems.join('\n')}`)
    assert.match(problems[0]!, line)
  }
})

const NAME = 'expected 1 to 100 printable characters'
const RANGE = 'expected an IP address or a CIDR, such as 203.0.113.7 or 203.0.113.0/24'
const ORIGIN = 'expected an origin as browsers send it, such as https://example.com or https://*.example.com'
const [PUZZLE, BITS] = ['expected sha256 or hashwx', 'expected min <= base <= max']
const NO_FIELD = 'there is no such field; expected one of'

/** What an entry has besides its name (or what stands in its place), and the line for it, without the `sites[1]` it starts with. */
const MISTAKES: readonly [entry: number | object | null, said: string][] = [
  [5, ': expected an object that describes a site, got 5'],
  [{ name: undefined }, `.name: missing; ${NAME}`],
  [{ name: '' }, `.name: ${NAME}, got ""`],
  [{ name: 'a\nb' }, `.name: ${NAME}, got "a\\nb"`],
  [{ siteKey: TEST_KEYS.passes.siteKey }, '.siteKey: expected a key of your own, got a published test key'],
  [{ siteKey: KEY }, `.siteKey: ${KEY} is the siteKey of sites[0] too`],
  [{ name: 'first' }, '.name: "first" is the name of sites[0] too; expected a siteKey to tell them apart'],
  [{ active: [], difficulty: { base: 20 } }, '.active: expected true or false, got []'],
  [{ plan: 'gold' }, '.plan: expected free or pro, got "gold"'],
  [{ origins: 'https://a.example' }, '.origins: expected a list of origins, got "https://a.example"'],
  [{ origins: ['http://a.b', 'b.c'] }, `.origins[1]: ${ORIGIN}, got "b.c"; did you mean https://b.c?`],
  [{ threshold: 1.01 }, '.threshold: expected a number from 0 to 1, got 1.01'],
  [{ puzzle: { toString: 1 }, difficulty: { base: 20 } }, `.puzzle: ${PUZZLE}, got {"toString":1}`],
  [{ difficulty: 18 }, '.difficulty: expected an object with base, min, max, solveMs, got 18'],
  [{ difficulty: { min: 19 } }, `.difficulty: ${BITS}, got 19, 18, 28`],
  [{ difficulty: { top: 20 } }, `.difficulty.top: ${NO_FIELD} base, min, max, solveMs`],
  [{ difficulty: { solveMs: 300, base: 18 } }, '.difficulty: expected base or solveMs, got both'],
  [{ difficulty: { solveMs: 300, min: 20, max: 19 } }, `.difficulty: ${BITS}, got 20, 20, 19`],
  [{ plan: 'pro', ipRules: { allow: ['1.2.3.4/33'] } }, `.ipRules.allow[0]: ${RANGE}, got "1.2.3.4/33"`],
  [{ keys: ['a', ' '] }, `.keys[1]: ${NAME}, got " "`],
  [{ limits: { verify: 0 } }, '.limits.verify: expected an integer from 1 to 1000000, got 0'],
]

const entryOf = (mistake: number | object | null) =>
  mistake !== null && typeof mistake === 'object' ? { name: 'y', ...mistake } : mistake

test('each mistake of an entry is named by its place, with what was expected and what was found', () => {
  for (const [mistake, said] of MISTAKES) {
    const file = fileOf([{ siteKey: KEY, name: 'first' }, entryOf(mistake)])
    assert.deepEqual(problemsOf(file), [`sites[1]${said}`])
  }
})

test('an API key stands in a file once, with a time that there is', () => {
  const key = { id: 'abcd1234', siteKey: KEY, secretSha256: 'ab'.repeat(32) }
  const apiKeys = [
    { ...key, revokedAt: 1, updatedAt: 1 },
    { ...key, createdAt: 8.64e15 + 1, name: '\u0007x' },
  ]
  assert.deepEqual(problemsOf(fileOf([], { apiKeys })), [
    'apiKeys[1].createdAt: expected a time in Unix milliseconds, got 8640000000000001',
    `apiKeys[1].name: ${NAME}, got "\\u0007x"`,
    'apiKeys[1].id: abcd1234 is the id of apiKeys[0] too',
  ])
})

test('fields that do not exist, whatever they are called, are named on one line', () => {
  const strange = `{"format":"powgate-sites","version":1,"sites":[{"name":"x","__proto__":{},"a\\u001b[31m\\nb":1,"webdriver":1}]}`
  const problems = problemsOf(Buffer.from(strange))
  assert.equal(problems.length, 3)
  for (const line of problems)
    assert.match(line, /^sites\[0\]\.\S+: there is no such field; expected [ -~]+$/)
  const [line] = problemsOf(fileOf([{ name: 'x', scoreWeights: { robot: 1 } }]))
  assert.match(line!, /^sites\[0\]\.scoreWeights\.robot: there is no such field; expected one of webdriver, /)
})

test('two sites of one name are told apart by their keys', () => {
  const [first, second] = [site(), site()]
  const entries = entriesOf(Buffer.from(JSON.stringify(exportFile([first, second]))))
  assert.equal(diffWithFile(entries, [first, second], ...OPTIONS).unchanged, 2)
  const { siteKey: _, ...keyless } = entries[0]!
  const [problem] = diffWithFile([keyless], [first, second], ...OPTIONS).problems
  assert.equal(problem, 'sites[0].siteKey: missing; 2 sites are called "shop"; expected a siteKey')
})

test('an entry means the site with its key, else the one with its name, else a new one', () => {
  const [shop, blog] = [site(), site({ name: 'blog' })]
  const file = fileOf([
    { siteKey: shop.siteKey, name: 'shop 2' },
    { name: 'blog', threshold: 0.7 },
    { name: 'shop' }, // a new site: the one of this name has another now
    { siteKey: KEY, name: 'restored' },
  ])
  const { changes, unchanged, problems } = diffWithFile(entriesOf(file), [shop, blog], ...OPTIONS)
  assert.deepEqual([unchanged, problems], [0, []])
  const told = changes.map(one => `${one.action} ${one.after.name}${one.isNewSiteKey ? ', new key' : ''}`)
  assert.deepEqual(told, ['change shop 2', 'change blog', 'create shop, new key', 'create restored'])
  assert.deepEqual(changes[0]!.after, { ...shop, name: 'shop 2', updatedAt: NOW })
  assert.deepEqual(changes[0]!.fields, [{ field: 'name', from: 'shop', to: 'shop 2' }])
  assert.deepEqual(changes[1]!.after, { ...blog, threshold: 0.7, updatedAt: NOW })
  assert.equal(changes[3]!.after.siteKey, KEY)
  assert.equal(changes[3]!.after.createdAt, NOW)
})

test('a copy with other settings than a newer one of the store is a problem; without its time it is written', () => {
  const { siteKey, ...newer } = site({ threshold: 0.7, updatedAt: 5 })
  /** With a copy of this time in the file, where the store's is of 5 and has another threshold. */
  const problems = (updatedAt?: number, threshold = 0.5) => {
    const entry = { ...SITE_DEFAULTS, siteKey, name: 'shop', threshold, ...(updatedAt && { updatedAt }) }
    return diffWithFile([entry], [{ siteKey, ...newer }], ...OPTIONS).problems
  }
  const [line] = problems(4)
  assert.match(line!, /^sites\[0\]\.updatedAt: the store has a newer copy of site_\w+, and keeps it: /)
  assert.deepEqual([...problems(5), ...problems(), ...problems(4, 0.7)], [])
})

test('IP rules are for plan pro; those that a plan left behind may stay', () => {
  const rules = { allow: [], block: ['10.0.0.1'] }
  const asleep = site({ plan: 'free', ipRules: rules }) // its rules have no effect
  const problems = (change: Partial<SiteSettings>) => {
    const entry = { ...SITE_DEFAULTS, siteKey: asleep.siteKey, name: 'shop', ...change }
    return diffWithFile([entry], [asleep], ...OPTIONS).problems
  }
  const others = { allow: ['10.0.0.2'], block: [] }
  for (const change of [{ ipRules: rules }, { ipRules: rules, threshold: 0 }, {}])
    assert.deepEqual(problems(change), [])
  assert.deepEqual(problems({ plan: 'pro', ipRules: others }), [])
  const line = (name: string) => `sites[0].ipRules.${name}: expected plan pro, got free`
  assert.deepEqual(problems({ ipRules: others }), [line('allow')])
  const { updatedAt: _, ...settings } = asleep
  const fresh = diffWithFile([{ ...settings, siteKey: KEY }], [], ...OPTIONS)
  assert.deepEqual(fresh.problems, [line('block')])
})

test('the schema that `site schema` prints refuses at least ten of the mistakes too; only the parser can see the others', () => {
  const check = new Ajv({ strict: true }).compile(EXPORT_FILE_SCHEMA)
  const refused = MISTAKES.filter(([mistake]) => !check(JSON.parse(fileOf([entryOf(mistake)]).toString())))
  assert.ok(refused.length > 9, String(refused.length))
})
