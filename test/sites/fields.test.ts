/** What the table of a site's fields promises, for each field. A new row fails here until all of it holds. */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readInput } from '../../src/cli/command.ts'
import { COMMANDS } from '../../src/cli/run.ts'
import { givenFields, withGiven } from '../../src/cli/site-flags.ts'
import { siteFields } from '../../src/cli/views.ts'
import { siteChanges } from '../../src/domain/audit.ts'
import {
  FIELDS,
  type SiteField,
  type SiteSettings,
  valueIn,
  withValue,
} from '../../src/domain/site-fields.ts'
import { planApply, sitesFile } from '../../src/sites/file.ts'
import { parseSitesFile } from '../../src/sites/parse-file.ts'
import { siteRecord } from '../../src/sites/sites.ts'
import { temporaryDir } from '../harness/temporary.ts'

const policy = join(temporaryDir('fields'), 'policy.json')
writeFileSync(policy, '{ "loadTolerated": 8 }')

const OUTAGE = 'contract/outage.test.ts'
const SETTINGS = 'contract/site-settings.test.ts'
const KNOWN = 'a known network has a limit of its own at this site'
const OWN_LIMITS = 'a site has limits of its own, and its headers tell them'

/** A value, the flags that set it, and the effect: a file below test/, and a text in it that names the effect. */
type Trial = readonly [value: unknown, flags: string, file: string, effect: string]

const TRIALS: Readonly<Record<string, Trial>> = {
  name: ['other', '--name other', 'cli/cli.test.ts', 'a site as text'],
  active: [false, '', SETTINGS, 'a disabled site is refused by every worker'],
  plan: ['pro', '--plan pro', 'contract/score.ts', 'IP rules on plan'],
  origins: [['http://a.b'], '--origin http://a.b', 'contract/sites.ts', 'the listed origin'],
  requireOrigin: [true, '--require-origin', 'contract/sites.ts', 'no Origin header, but requireOrigin'],
  threshold: [0.25, '--threshold .25', 'contract/score.ts', 'the score reaches the threshold of the site'],
  minScore: [0.4, '--min-score .4', 'contract/score.ts', 'a site has one bound at redemption'],
  'difficulty.base': [20, '--base 20', 'contract/challenge.ts', "a lone visitor gets the site's base"],
  'difficulty.min': [17, '--min 17', 'domain/rules.test.ts', 'difficulty is within the bounds of the site'],
  'difficulty.max': [24, '--max 24', 'contract/challenge.ts', "nor the site's own bounds"],
  'difficulty.solveMs': [300, '--solve-ms 300', SETTINGS, 'a site names a solving time'],
  usualRate: [40, '--usual-rate 40', 'e2e/logs.test.ts', 'a rate that the operator expects'],
  'ipRules.allow': [['::1'], '--plan pro --allow ::1', 'contract/score.ts', 'not on the allow list'],
  'ipRules.block': [['::1'], '--plan pro --block ::1', 'contract/score.ts', 'in a blocked CIDR'],
  'limits.challenge': [5, '--limit-challenge 5', SETTINGS, OWN_LIMITS],
  'limits.verify': [5, '--limit-verify 5', SETTINGS, OWN_LIMITS],
  'limits.redeem': [5, '--limit-redeem 5', SETTINGS, OWN_LIMITS],
  'known.networks': [['::1', '10.0.0.0/8'], '--known-networks ::1,10.0.0.0/8', SETTINGS, KNOWN],
  'known.limit': [70, '--known-limit 70', SETTINGS, KNOWN],
  'failOpen.challenge': [false, '--fail-closed challenge', OUTAGE, 'a site that fails closed'],
  'failOpen.verify': [true, '--fail-open verify', OUTAGE, 'each endpoint of a site'],
}

function trialOf({ name, path }: SiteField): Trial {
  const weight = [0.5, `--weight ${path[1]}=.5`, 'domain/rules.test.ts', 'each flag takes off what'] as const
  const trial = path[0] === 'scoreWeights' ? weight : TRIALS[name]
  assert.ok(trial, `${name} has no row in TRIALS`)
  return trial
}

const KEY = 'site_0123456789ABCDEFabcdef'
const BEFORE = siteRecord({ name: 'shop' }, { siteKey: KEY, createdAt: 1 }, 1)

async function updated(before: SiteSettings, flags: string): Promise<SiteSettings> {
  const command = COMMANDS.find(({ name }) => name === 'site update')!
  return withGiven(before, await givenFields(readInput(command, [KEY, ...flags.split(' ')], {})))
}

const SRC = new URL('../../src', import.meta.url)
/** A word in a comment reads nothing and proves nothing. */
const codeIn = (file: URL) => readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
/** All but the table, and what passes every field on. */
const READERS = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter(file => /^(?!cli\/|sites\/|domain\/site-fields).*\.ts$/.test(file))
  .map(file => codeIn(new URL(file, SRC)))
  .join()

for (const field of FIELDS) {
  const { name, path, flag, off, command, clear } = field
  test(`${name}: from a flag to the record, the audit log and a file, and back`, async () => {
    const [value, flags, file, effect] = trialOf(field)
    assert.ok(codeIn(new URL(`../${file}`, import.meta.url)).includes(effect), `${file}: ${effect}`)
    assert.ok(new RegExp(`\\b${path.at(-1)}\\b`).test(READERS), `nothing in src/ reads ${name}`)
    assert.notDeepEqual(value, valueIn(BEFORE, field), 'the default proves nothing')

    if (flag !== undefined && typeof value === 'boolean')
      assert.ok(off, 'a flag for yes needs `off`, one for no')
    assert.ok(flag !== undefined || COMMANDS.some(({ name }) => name === command), 'no flag, and no command')
    const settings = flag === undefined ? withValue(BEFORE, field, value) : await updated(BEFORE, flags)
    const record = siteRecord(settings, BEFORE, 2)
    const change = siteChanges(BEFORE, record).find(({ field }) => field === name)
    assert.deepEqual(change, { field: name, from: valueIn(BEFORE, field) ?? null, to: value })
    assert.match(siteFields(record).join('\n'), new RegExp(`^${name},`, 'm'), 'site show')

    const freely = flags.replace('--plan pro ', '')
    if (field.plan !== undefined)
      await assert.rejects(updated(BEFORE, freely), /: expected --plan pro, got free/)

    const exported = JSON.stringify(sitesFile([record]))
    const parsed = parseSitesFile(Buffer.from(exported))
    assert.ok('value' in parsed, JSON.stringify(parsed))
    const options = { disablesMissing: false, neverMissing: new Set<string>(), newSiteKey: () => KEY, now: 2 }
    const [applied] = planApply(parsed.value.sites, [BEFORE], options).changes
    assert.equal(JSON.stringify(applied?.after), JSON.stringify(record))

    if (clear !== undefined && clear !== 'base')
      assert.deepEqual(valueIn(await updated(record, `--${clear}`), field), valueIn(BEFORE, field))
  })
}

test('a list replaces the old one; limits and weights are set one by one; a flag that clears comes first', async () => {
  const once =
    '--plan pro --origin http://a.b --block ::1 --limit-verify 3 --weight webdriver=0 --fail-open verify'
  const twice =
    '--origin http://b.c --origin http://b.c --no-limits --limit-redeem 9 --weight noPlugins=0 --plan free'
  const { origins, ipRules, limits, scoreWeights, failOpen } = await updated(
    await updated(BEFORE, once),
    twice,
  )
  assert.deepEqual([origins, ipRules.block, failOpen], [['http://b.c'], ['::1'], { verify: true }])
  assert.deepEqual([limits, scoreWeights], [{ redeem: 9 }, { webdriver: 0, noPlugins: 0 }])
})
