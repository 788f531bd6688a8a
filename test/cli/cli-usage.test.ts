/** Help, and calls that cannot be understood: exit code 2, one line, and nothing opened. */

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type Command, commandHelp } from '../../src/cli/command.ts'
import { commandsOf } from '../../src/cli/run.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { Powgate } from './cli-process.ts'

/** Whatever opens the store makes something in it. */
const dataDir = join(temporaryDir('usage'), 'data')
mkdirSync(dataDir)
const isUntouched = () => readdirSync(dataDir).length === 0
const powgate = new Powgate({ POWGATE_DATA_DIR: dataDir })

/** What a call that cannot be understood says. */
async function misuse(call: string): Promise<string> {
  const line = await powgate.problem(2, call)
  assert.ok(isUntouched(), 'the store was opened')
  assert.doesNotMatch(line, /sss|hunter2/, 'a secret is repeated')
  return line
}

/** All that there are, from the table itself: a new command is tested without being named here. */
const TABLE = await commandsOf()
const COMMANDS = TABLE.map(({ name }) => name)

const SITE = 'site_0123456789ABCDEFabcdef'
const API_KEY = `sk_abcdefgh_${'s'.repeat(43)}`

/** How calls begin, how they go on, and what is said of them. */
const MISUSES: Readonly<Record<string, readonly (readonly [rest: string, line: RegExp])[]>> = {
  '': [
    ['sites', /^sites: there is no such command \(did you mean site\?\); expected serve, check, .*--help$/],
    ['site', /^site: expected one of create, list, show, update, disable, enable, .*, schema$/],
    ['site crate', /^site crate: there is no such command \(did you mean create\?\); site has create, list/],
    ['key delete x', /^key delete: there is no such command; key has create, list, update, revoke$/],
    ['site list --jsn', /^--jsn: .* \(did you mean --json\?\); site list has --json, --config, --help$/],
    ['site create', /^--name: missing; expected 1 to 100 printable characters$/],
    [`site export ${SITE} shop`, /^SITE_KEY: expected .*got "shop"$/],
    ['site show shop', /^SITE_KEY: expected site_ and 22 letters or digits, got "shop"$/],
    [`site show ${SITE} ${SITE}`, /^unexpected argument "site_/],
    [`site update ${SITE}`, /^site update: expected something to change/],
    [
      `site update ${SITE} --block none`,
      /got "none"; did you mean no --block, or --no-block with site update\?$/,
    ],
    [`site update ${SITE} --origin https://a.example --no-origins`, /^--origin, --no-origins: expected one/],
    [`site raise ${SITE} --bits 3`, /^--for is missing: .* Example: --bits 3 --for 2h$/],
    [`site raise ${SITE} --bits 0 --for 1h`, /^--for has no effect with --bits 0/],
    [`site raise ${SITE} --bits 3 --for 25h`, /^--for: expected a duration from 1m to 1d, .* got "25h"$/],
    [`key create ${SITE} --expires 2020-01-01`, /^--expires: .* in the future: .*got "2020-01-01"$/],
    [`key update ${API_KEY} --no-expiry`, /^KEY_ID: expected .*did you mean abcdefgh\?$/],
    ['apply', /^--file: missing; expected a file, or - for standard input$/],
    ['apply -f a --file b', /^--file: expected once$/],
    ['apply sites.json', /^unexpected argument "sites\.json"; usage: powgate apply --file FILE \[flags\]$/],
    ['audit --since yesterday', /^--since: expected a date .*got "yesterday"$/],
    [`solve ${'A'.repeat(32)} 18`, /^NONCE: expected the nonce .*got "A{32}"$/],
    [`solve ${'a'.repeat(31)} 18`, /^NONCE: expected the nonce .*got "a{31}"$/],
    [`solve ${'a'.repeat(32)} 29`, /^DIFFICULTY: expected an integer from 16 to 28, got "29"$/],
    ['try', /expected both, or neither with the keys .*first-keys, for this machine's service alone$/],
    [`try --site-key ${SITE} --api-key ${API_KEY.slice(0, -1)}`, /^--api-key: expected sk_, 8 letters/],
  ],
  'site create --name x': [
    ['--origin shop.example', /^--origin: .*, got "shop\.example"; did you mean https:\/\/shop\.example\?$/],
    ['--origin https://a.example --origin ftp://b', /^--origin: .*got "ftp:\/\/b"/],
    ['--threshold=-0.1', /^--threshold: expected a number from 0 to 1, got "-0\.1"$/],
    ['--base 15', /^--base: expected an integer from 16 to 28, got "15"$/],
    ['--solve-ms 300 --base 18', /^--solve-ms, --base: expected one of the two, not both$/],
    ['--puzzle hashwx --min 18', /^--min, --base, --max: .*, got 18, 17, 28$/],
    ['--plan pro --allow 10.0.0.0/33', /^--allow: expected an IP address or a CIDR.*"10\.0\.0\.0\/33"$/],
    ['--allow 10.0.0.1', /^--allow: expected --plan pro, got free$/],
    ['--known-networks 10.0.0.1,::/0', /^--known-networks: .* not everybody \(\/0\), got "10\.0\.0\.1,::/],
    ['--fail-open verify-token', /^--fail-open: expected one of challenge, verify, got "verify-token"$/],
    ['--fail-open verify --fail-closed verify', /^--fail-open, --fail-closed: expected one .* for verify/],
    ['--weight robot=1', /^--weight: expected one of webdriver, .*, then = and a number .*got "robot=1"$/],
    ['--weight webdriver=1 --weight webdriver=0', /^--weight: expected webdriver once$/],
  ],
  [`try --site-key ${SITE} --api-key ${API_KEY}`]: [
    ['--url localhost:8080', /^--url: expected http:\/\/ or https:\/\//],
    ['--url http://me:hunter2@localhost', /^--url: expected http:\/\/ or https:\/\//],
    ['--origin https://*.a.example', /^--origin: expected an origin/],
  ],
}

const CALLS = Object.entries(MISUSES).flatMap(([start, rows]) =>
  rows.map(([rest, line]) => [`${start} ${rest}`.trim(), line] as const),
)

describe('misuse', () => {
  for (const [call, expected] of CALLS)
    test(`powgate ${call.slice(0, 80)}`, async () => {
      assert.match(await misuse(call), expected)
    })

  test('a name for the audit log that cannot stand in a line', async () => {
    for (const variable of ['POWGATE_ACTOR', 'SUDO_USER']) {
      const line = await powgate.with({ [variable]: 'eve\nroot\x1b[2K' }).problem(2, `site create --name x`)
      assert.equal(line, `${variable}: expected 1 to 100 printable characters, got "eve\\nroot\\u001b[2K"`)
    }
    assert.ok(isUntouched(), 'the store was opened')
  })

  test('a variable is named where it is the one that is wrong', async () => {
    const withKeys = powgate.with({ POWGATE_SITE_KEY: 'shop', POWGATE_API_KEY: API_KEY })
    assert.match(await withKeys.problem(2, 'try'), /^POWGATE_SITE_KEY: expected site_ .*got "shop"$/)
  })
})

/** A call of a command that it takes, but for the flag that is being tested. */
function complete(command: Command, tested: string): string {
  const positionals = command.positionals.filter(({ isOptional }) => !isOptional).map(() => 'x')
  const flags = Object.entries(command.flags).filter(([name, flag]) => flag.isRequired && name !== tested)
  return [command.name, ...positionals, ...flags.map(([name]) => `--${name} x`)].join(' ')
}

describe('every command', () => {
  for (const command of TABLE) {
    test(`powgate ${command.name}: an unknown flag, an argument too many, a flag without its value or with one too many`, async () => {
      assert.match(await misuse(`${command.name} --bogus`), /^--bogus: there is no such flag; /)
      const extra = [command.name, ...command.positionals.map(() => 'x'), 'y z w v'].join(' ') // more than any command takes
      assert.match(await misuse(extra), /^(unexpected argument|[A-Z_]+: expected|[A-Z_]+, |--)/)
      for (const [name, { value }] of Object.entries(command.flags)) {
        const call = `${complete(command, name)} --${name}`
        if (value === undefined) assert.equal(await misuse(`${call}=x`), `--${name}: expected no value`)
        else assert.match(await misuse(call), new RegExp(`^--${name}: expected `))
      }
    })
  }
})

describe('help', () => {
  test('powgate --help and -h list every command; without a command the same is on stderr, exit code 2', async () => {
    const help = await powgate.text('--help')
    for (const command of COMMANDS) assert.match(help, new RegExp(`^ {2}${command}\\b`, 'm'))
    assert.match(help, /Examples:\n {2}powgate serve\n {2}powgate site create /)
    assert.equal(await powgate.text('-h'), help)
    const { code, out, err } = await powgate.run()
    assert.deepEqual([code, out, err], [2, '', help])
  })

  test('powgate key --help lists the commands of key alone', async () => {
    const help = await powgate.text('key --help')
    assert.match(help, /^ {2}key revoke/m)
    assert.doesNotMatch(help, /^ {2}site show/m)
  })

  for (const command of COMMANDS) {
    test(`powgate ${command} --help`, async () => {
      const entry = TABLE.find(({ name }) => name === command)!
      const help = await commandHelp(entry)
      assert.match(help, new RegExp(`^Usage: powgate ${command}\\b`, 'm'))
      assert.match(help, new RegExp(`^Example:\\n {2}powgate ${command}\\b`, 'm'))
      if (command !== 'serve' && !('json' in entry.flags)) assert.match(help, /JSON/, 'a script can read it')
      // Every flag that the command takes is explained: an unknown flag makes it list them all.
      const known = /has (.*)$/.exec(await misuse(`${command} --bogus`))![1]!.split(', ')
      for (const flag of known) assert.match(help, new RegExp(`^ {2}${flag}( [A-Z]+)? {2,}\\S`, 'm'), flag)
      // Help wins over whatever else is wrong.
      assert.equal(await powgate.text(`${command} --bogus --help`), help)
      assert.ok(isUntouched(), 'the store was opened')
    })
  }

  test('run by npm, the examples can be copied', async () => {
    const npm = new Powgate({ npm_lifecycle_event: 'powgate' }, { isAlone: true })
    const help = await npm.text('site list --help')
    assert.match(help, /Example:\n {2}npm run -s powgate -- site list --json\n/)
  })

  test('--version', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    const said = await new Powgate({}, { isAlone: true }).text('--version')
    assert.ok(said.startsWith(`powgate ${version}\nHTTP server: `))
    assert.match(said, /: \S+ \d+\.\d+\.\d+, known binary [0-9a-f]{12}\n$/)
  })
})
