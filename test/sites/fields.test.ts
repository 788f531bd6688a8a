/** Each field of a site goes from a flag to the record, `site show`, the audit log and a file. A new field needs a row in TRIALS. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readInput } from '../../src/cli/command.ts'
import { commandsOf } from '../../src/cli/run.ts'
import { givenFields, withGiven } from '../../src/cli/site-flags.ts'
import { siteLines } from '../../src/cli/views.ts'
import { siteChanges } from '../../src/domain/audit.ts'
import {
  BASE_BITS,
  FIELDS,
  type SiteField,
  type SiteSettings,
  unknownFields,
  valueIn,
  withValue,
} from '../../src/domain/site-fields.ts'
import { diffWithFile, exportFile, FILE_FORMAT, FILE_VERSION } from '../../src/sites/export-file.ts'
import { parseExportFile } from '../../src/sites/parse-export-file.ts'
import { siteRecord } from '../../src/sites/sites.ts'

/** A value that is not the default, and the flags that set it. What it does is tested in test/contract/ and test/domain/. */
type Trial = readonly [value: unknown, flags: string]

const TRIALS: Readonly<Record<string, Trial>> = {
  name: ['other', '--name other'],
  active: [false, ''], // `site disable` sets it
  plan: ['pro', '--plan pro'],
  origins: [['http://a.b'], '--origin http://a.b'],
  requireOrigin: [true, '--require-origin'],
  threshold: [0.25, '--threshold .25'],
  minScore: [0.4, '--min-score .4'],
  signals: ['none', '--signals none'],
  puzzle: ['hashwx', '--puzzle hashwx'],
  'difficulty.base': [20, '--base 20'],
  'difficulty.min': [17, '--min 17'],
  'difficulty.max': [24, '--max 24'],
  'difficulty.solveMs': [300, '--solve-ms 300'],
  usualRate: [40, '--usual-rate 40'],
  'ipRules.allow': [['::1'], '--plan pro --allow ::1'],
  'ipRules.block': [['::1'], '--plan pro --block ::1'],
  'limits.challenge': [5, '--limit-challenge 5'],
  'limits.verify': [5, '--limit-verify 5'],
  'limits.redeem': [5, '--limit-redeem 5'],
  'known.networks': [['::1', '10.0.0.0/8'], '--known-networks ::1,10.0.0.0/8'],
  'known.limit': [70, '--known-limit 70'],
  'failOpen.challenge': [false, '--fail-closed challenge'],
  'failOpen.verify': [true, '--fail-open verify'],
}

function trialOf({ name, path }: SiteField): Trial {
  const weightTrial = [0.5, `--weight ${path[1]}=.5`] as const
  const trial = path[0] === 'scoreWeights' ? weightTrial : TRIALS[name]
  assert.ok(trial, `${name} has no row in TRIALS`)
  return trial
}

const KEY = 'site_0123456789ABCDEFabcdef'
const BEFORE = siteRecord({ name: 'shop' }, { siteKey: KEY, createdAt: 1 }, 1)

/** @returns the settings after `powgate site update` with these flags */
async function updated(before: SiteSettings, flags: string): Promise<SiteSettings> {
  const command = (await commandsOf()).find(({ name }) => name === 'site update')!
  return withGiven(before, await givenFields(readInput(command, [KEY, ...flags.split(' ')], {})))
}

test('rows of FIELDS that share a flag have the same help, and a flag for yes has one for no', () => {
  for (const field of FIELDS.filter(({ flag }) => flag !== undefined)) {
    const { name, flag, falseFlag } = field
    if (typeof trialOf(field)[0] === 'boolean') assert.ok(falseFlag, `${name} has no falseFlag`)
    for (const other of FIELDS.filter(other => other.flag === flag))
      for (const key of ['form', 'about', 'plan', 'falseFlag', 'unsetFlag'] as const)
        assert.equal(other[key], field[key], `${key} of ${name} and ${other.name}`)
  }
  const flagless = FIELDS.filter(({ flag }) => flag === undefined).map(({ name }) => name)
  assert.deepEqual(flagless, ['active'], 'no flag, and no commands of its own')
})

for (const field of FIELDS) {
  const { name, flag, unsetFlag } = field
  test(`${name}: from a flag to the record, the audit log and a file, and back`, async () => {
    const [value, flags] = trialOf(field)
    assert.notDeepEqual(value, valueIn(BEFORE, field), 'the default proves nothing')

    const settings = flag === undefined ? withValue(BEFORE, field.name, value) : await updated(BEFORE, flags)
    const now = 2
    const record = siteRecord(settings, BEFORE, now)
    const change = siteChanges(BEFORE, record).find(({ field }) => field === name)
    assert.deepEqual(change, { field: name, from: valueIn(BEFORE, field) ?? null, to: value })
    assert.match(siteLines(record).join('\n'), new RegExp(`^${name},`, 'm'), 'site show')

    if (field.plan !== undefined) {
      const flagsOfFree = flags.replace('--plan pro ', '')
      await assert.rejects(updated(BEFORE, flagsOfFree), /: expected --plan pro, got free/)
    }

    const exported = JSON.stringify(exportFile([record]))
    const parsed = parseExportFile(Buffer.from(exported))
    assert.ok('value' in parsed, JSON.stringify(parsed))
    const [missingSites, isDry] = ['stay', false] as const
    const [applied] = diffWithFile(parsed.value.sites, [BEFORE], missingSites, isDry, now).changes
    assert.equal(JSON.stringify(applied?.after), JSON.stringify(record))

    // `--base 20` unsets `difficulty.solveMs`. It needs a value, so it cannot be typed alone like the others (`--no-origins`).
    if (unsetFlag !== undefined && unsetFlag !== 'base')
      assert.deepEqual(valueIn(await updated(record, `--${unsetFlag}`), field), valueIn(BEFORE, field))
  })
}

test('a base that nobody chose follows the puzzle, both ways; a chosen one stays; that of --solve-ms is computed for the puzzle', async () => {
  assert.deepEqual(BASE_BITS, { sha256: 18, hashwx: 17 })
  const base = async (before: SiteSettings, flags: string) => (await updated(before, flags)).difficulty.base
  const hashwx = await updated(BEFORE, '--puzzle hashwx')
  assert.deepEqual([hashwx.difficulty.base, await base(hashwx, '--puzzle sha256')], [17, 18])
  assert.deepEqual([await base(hashwx, '--threshold .4'), await base(BEFORE, '--threshold .4')], [17, 18])
  assert.equal(await base(BEFORE, '--puzzle hashwx --base 18'), 18)
  const chosen = await updated(BEFORE, '--base 20')
  assert.equal(await base(chosen, '--puzzle hashwx'), 20)
  const timed = await updated(BEFORE, '--solve-ms 2000')
  assert.ok((await base(timed, '--puzzle hashwx')) < timed.difficulty.base)
  assert.equal(await base(await updated(timed, '--base 18'), '--puzzle hashwx'), 17)
  assert.match(siteLines(siteRecord(hashwx, BEFORE, 2)).join('\n'), /^difficulty\.base,17$/m)
})

test('the base that a file leaves out follows its puzzle, too, and bounds must fit it', () => {
  const fromFile = (difficulty: object) => {
    const sites = [{ name: 'a', puzzle: 'hashwx', difficulty }]
    return parseExportFile(Buffer.from(JSON.stringify({ format: FILE_FORMAT, version: FILE_VERSION, sites })))
  }
  assert.ok('value' in fromFile({ max: 17 }))
  assert.deepEqual(fromFile({ min: 18 }), {
    problems: ['sites[0].difficulty: expected min <= base <= max, got 18, 17, 28'],
  })
})

test('a list replaces the old one; limits and weights are set one by one; a flag that clears comes first', async () => {
  const once =
    '--plan pro --origin http://a.b --block ::1 --limit-verify 3 --weight webdriver=0 --fail-open verify'
  const twice =
    '--origin http://b.c --origin http://b.c --no-limits --limit-redeem 9 --weight noPlugins=0 --plan free'
  const before = await updated(BEFORE, once)
  const { origins, ipRules, limits, scoreWeights, failOpen } = await updated(before, twice)
  assert.deepEqual([origins, ipRules.block, failOpen], [['http://b.c'], ['::1'], { verify: true }])
  assert.deepEqual([limits, scoreWeights], [{ redeem: 9 }, { webdriver: 0, noPlugins: 0 }])
})

test('a flag takes values up to its bounds, and none beyond or of another form', async () => {
  const name = `name=${'n'.repeat(100)}`
  const good = `${name} limit-verify=1 limit-verify=1000000 threshold=0.5 threshold=1 min=18 max=18`
  for (const flag of good.split(' ')) await updated(BEFORE, `--${flag}`)
  const bad = `${name}n name= name=\u00a0 name=a\x1b limit-verify=0 limit-verify=1000001 limit-verify=1.5
    limit-verify=1e3 threshold=1.01 threshold=1e-1 known-networks=::1,x known-networks=::/0`
  for (const flag of bad.split(/ +|\n +/))
    await assert.rejects(updated(BEFORE, `--${flag}`), /: expected /, flag)
})

test('of the fields of a record only that of a later version is unknown, not those that have no flag but commands of their own', () => {
  assert.deepEqual([...unknownFields({ ...BEFORE, raise: 1, deletedAt: 3, minAge: 4 })], [['minAge', 4]])
})
