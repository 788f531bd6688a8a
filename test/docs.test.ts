/**
 * The documentation: links resolve, examples are well-formed, pages stay short, and their tables have what the code has. Such a table
 * is read as rows of cells, which are picked by a pattern of the first cell. dashboard/grafana.test.ts checks the table of metrics.
 */

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { positionalWord } from '../src/cli/command.ts'
import { commandsOf } from '../src/cli/run.ts'
import { SETTINGS, type Setting, type SettingName } from '../src/config/settings.ts'
import { CONTRACT_LIMITS, ENDPOINT_NAMES, ENDPOINTS } from '../src/domain/endpoint.ts'
import type { Policy } from '../src/domain/limits.ts'
import { OUTCOMES } from '../src/domain/outcome.ts'
import { type NetworkPricing, PRICING } from '../src/domain/pricing.ts'
import { SCORE_WEIGHTS } from '../src/domain/score.ts'
import { defaultText, FIELDS, type SiteField } from '../src/domain/site-fields.ts'
import { TEST_KEYS } from '../src/domain/test-keys.ts'
import { ENDPOINT_LABELS } from '../src/http/exchange-host.ts'
import { openapiDocument } from '../src/openapi/document.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN, NONCE_LENGTH } from '../src/protocol/proof.ts'
import { parseExportFile } from '../src/sites/parse-export-file.ts'
import { ENGLISH, LANGUAGES } from '../src/widget/texts.ts'
import { widgetSources } from './harness/widget.ts'
import { conformanceTable } from './release/torture/conformance-rows.ts'

const ROOT = new URL('..', import.meta.url).pathname
const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8')
const COMMANDS = await commandsOf()
const filesBelow = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map(name => join(folder, name))
const PAGES = [...readdirSync(ROOT), ...filesBelow('docs')].filter(name => name.endsWith('.md'))
const README_WORDS_MAX = 550
const PAGE_WORDS_MAX = 3500
const PICTURE_BYTES_MAX = 150 * 1024

/** A page's lines outside of blocks of code, and its blocks. */
function read(page: string) {
  const prose: string[] = []
  const blocks: { language: string; text: string }[] = []
  let block: (typeof blocks)[number] | undefined
  for (const [index, line] of textOf(page).split('\n').entries()) {
    const about = `${page}, line ${index + 1}`
    const fence = /^ *```(\w*)$/.exec(line)
    if (fence === null) {
      assert.doesNotMatch(line, /```/, `${about}: a fence stands alone on its line`)
      if (block === undefined) prose.push(line)
      else block.text += `${line}\n`
    } else if (block === undefined) {
      block = { language: fence[1]!, text: '' }
      blocks.push(block)
    } else {
      assert.equal(fence[1], '', `${about}: a block begins within another`)
      block = undefined
    }
  }
  assert.equal(block, undefined, `${page}: a block does not end`)
  return { prose, blocks }
}

/** The anchors of a page's headings, as code hosts make them. */
function anchorsOf(page: string): Set<string> {
  const headings = read(page).prose.filter(line => /^#+ /.test(line))
  const plain = headings.map(line => line.replace(/^#+ /, '').replace(/[^\w\- ]/g, ''))
  return new Set(plain.map(line => line.toLowerCase().replaceAll(' ', '-')))
}

/** The rows of all tables of a page whose first cell matches, each as its cells. */
const rows = (page: string, first: RegExp) => rowsOf(read(page).prose, first)

function rowsOf(prose: readonly string[], first: RegExp): string[][] {
  const lines = prose.filter(line => line.startsWith('| '))
  const cells = lines.map(line => line.split(/(?<!\\)\|/).slice(1, -1))
  return cells.map(row => row.map(cell => cell.trim())).filter(([cell]) => first.test(cell!))
}

/** What stands between backquotes. */
const codes = (cell: string) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, code]) => code!)

test('every relative link and anchor leads to a file and a heading', () => {
  let links = 0
  for (const page of PAGES) {
    const prose = read(page).prose.join('\n')
    for (const [, target] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target!)) continue
      links++
      const [path, anchor] = target!.split('#')
      const file = path === '' ? page : relative(ROOT, resolve(ROOT, dirname(page), path!))
      assert.ok(existsSync(join(ROOT, file)), `${page}: there is no ${target}`)
      if (anchor !== undefined) assert.ok(anchorsOf(file).has(anchor), `${page}: ${target} is no heading`)
    }
  }
  assert.ok(links > 80)
})

test('the index of docs/ links to every page', () => {
  const index = textOf('docs/README.md')
  for (const page of PAGES.filter(page => page.startsWith('docs/') && page !== 'docs/README.md'))
    assert.ok(index.includes(`](${relative('docs', page)})`), `docs/README.md does not link to ${page}`)
})

test('the README takes three minutes, and a page one reading', () => {
  const words = (page: string) => read(page).prose.join(' ').split(/\s+/).length
  assert.ok(words('README.md') <= README_WORDS_MAX)
  // Pages that nobody reads from end to end may be long.
  for (const page of PAGES.filter(page => !/^docs\/evidence\/|^CHANGELOG/.test(page)))
    assert.ok(words(page) <= PAGE_WORDS_MAX, `${page}: ${words(page)} words`)
  for (const name of readdirSync(join(ROOT, 'docs/images')))
    assert.ok(statSync(join(ROOT, 'docs/images', name)).size <= PICTURE_BYTES_MAX, name)
})

test('no page has text that was to be filled in later', () => {
  // `@NAME@` is filled in by a program.
  for (const page of PAGES) assert.doesNotMatch(textOf(page), /@\w*@|TODO|FIXME|TBD/, page)
})

test('every path of the tree that a page names is there', () => {
  const named = PAGES.flatMap(page => {
    const prose = read(page).prose.join('\n')
    const paths = prose.matchAll(/`((?:src|test|bench|docs|scripts)\/[^`*<]*)`/g)
    return Array.from(paths, ([, path]) => [page, path!] as const)
  })
  assert.ok(named.length > 30, String(named.length))
  for (const [page, path] of named) assert.ok(existsSync(join(ROOT, path)), `${page}: there is no ${path}`)
})

test('every example in JSON is JSON, and the export file is one', () => {
  const examples = PAGES.flatMap(page => read(page).blocks.filter(({ language }) => language === 'json'))
  for (const { text } of examples) assert.doesNotThrow(() => JSON.parse(text), text)
  const files = examples.filter(({ text }) => text.includes('"powgate-sites"'))
  assert.equal(files.length, 1)
  const parsed = parseExportFile(Buffer.from(files[0]!.text))
  assert.deepEqual('problems' in parsed ? parsed.problems : [], [])
})

/** A setting as it is documented: the same words as in `powgate serve --help`. */
function settingRow(name: SettingName): string[] {
  const { fallback, expects, about }: Setting = SETTINGS[name]
  const defaultText = name === 'POWGATE_WORKERS' ? 'cores' : fallback === '' ? '-' : `\`${fallback}\``
  return [`\`${name}\``, defaultText, name === 'REDIS_URL' ? 'see below' : expects, about]
}

/** Compares a page's table with what it should be, and prints the rows that it lacks as they have to be written. */
function assertTable(page: string, first: RegExp, expected: readonly string[][]): void {
  const there = rows(page, first)
  const textOfRow = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const textsThere = there.map(textOfRow)
  const lacking = expected.map(textOfRow).filter(text => !textsThere.includes(text))
  assert.ok(lacking.length === 0, `${page} lacks:\n${lacking.join('\n')}`)
  assert.deepEqual(there, expected)
}

test('settings.md lists every setting with its default, and each is read', () => {
  const names = Object.keys(SETTINGS) as SettingName[]
  assertTable('docs/reference/settings.md', /^`[A-Z0-9_]+`$/, names.map(settingRow))
  const readers = ['config/config.ts', 'config/redis.ts', 'config/secrets.ts', 'domain/endpoint.ts']
  const texts = readers.map(name => textOf(`src/${name}`)).join()
  for (const name of names) assert.ok(new RegExp(`['.]${name}\\b`).test(texts), `nothing reads ${name}`)
})

test('running.md lists the settings that need a restart', () => {
  /** Two rows: in the first all are settings that need a restart, in the second only the one that is named first. */
  const [named, withProxies] = rows('docs/reference/running.md', /^`(HOST|POWGATE_PROXY_PROTOCOL)`/)
  const needing = Object.entries<Setting>(SETTINGS).filter(([, { needsRestart }]) => needsRestart)
  const listed = [...codes(named![0]!), codes(withProxies![0]!)[0]!]
  assert.deepEqual(listed.sort(), needing.map(([name]) => name).sort())
})

test('http-api.md names every endpoint, and lists every code with its status, those of /siteverify, and the test keys', () => {
  const text = textOf('docs/reference/http-api.md')
  for (const name of ENDPOINT_NAMES) assert.match(text, new RegExp(`/${name}\\b`))

  const outcomes = Object.values(OUTCOMES)
  const refusals = rows('docs/reference/http-api.md', /^\d{3}$/)
  const listed = refusals.map(([status, code]) => `${status} ${codes(code!)}`)
  const known = outcomes.map(({ status, code }) => `${status} ${code}`)
  assert.deepEqual([...listed].sort(), [...new Set(known)].sort())

  const ofSiteverify = new Set(outcomes.map(({ siteverifyCode }) => siteverifyCode))
  const siteverify = rows('docs/reference/http-api.md', /^`[a-z]+-[a-z-]+`(, `[a-z-]+`)*$/)
  assert.deepEqual(siteverify.flatMap(([cell]) => codes(cell!)).sort(), [...ofSiteverify].sort())

  const keys = rows('docs/reference/http-api.md', /^(passes|fails|used)$/)
  const listedKeys = keys.map(([outcome, site, , api]) => [outcome, ...codes(site!), ...codes(api!)])
  const published = Object.entries(TEST_KEYS).map(([outcome, keys]) => [outcome, keys.siteKey, keys.apiKey])
  assert.deepEqual(listedKeys, published)
})

const [, ...sections] = textOf('docs/reference/contract.md').split(/^##+ (?=\d)/m)
/** The sections of contract.md, by number. */
const CONTRACT = new Map(sections.map(text => [/^\d+(\.\d+)?/.exec(text)![0], text]))

test('contract.md has each section and rule that is cited, and tests cite each rule that leaves nothing open', () => {
  const isText = (name: string) => /\.(ts|js|md|lua|txt)$/.test(name) && !/\b(node_modules|dist)\//.test(name)
  const files = ['src', 'test', 'bench', 'client', 'docs'].flatMap(filesBelow).filter(isText)
  const uncited = new Set<string>()
  for (const [section, text] of CONTRACT)
    for (const [, rule] of text.matchAll(/\n(\d+)\. (?!.*\bis open\b)/g))
      if (section !== '1') uncited.add(`§${section} rule ${rule}`) // the overview, which the others repeat
  for (const file of files) {
    for (const [citation, section, rule] of textOf(file).matchAll(/§(\d+(?:\.\d+)?)(?: rule (\d+))?/g)) {
      const text = CONTRACT.get(section!)
      assert.ok(text !== undefined, `${file} cites ${citation}: contract.md has no such section`)
      const isThere = rule === undefined || text.includes(`\n${rule}. `)
      assert.ok(isThere, `${file} cites ${citation}: that section has no such rule`)
      if (file.startsWith('test/')) uncited.delete(citation)
    }
  }
  assert.deepEqual([...uncited], [], 'no test cites these rules')
})

/** Fields of POST /verify that are not the contract's. */
const EXTENSIONS = ['action', 'cdata']

const OPENAPI = JSON.parse(JSON.stringify(openapiDocument('')))

test('contract.md has the fields of the OpenAPI document, and says which are not required', () => {
  const { components } = OPENAPI
  // | field | type | required (2.2 alone) | what |
  const fieldsIn = (section: string) => rowsOf(CONTRACT.get(section)!.split('\n'), /^`\w+`$/)
  const bodies = { 2.1: 'Challenge', 2.2: 'Solution', 2.3: 'Passed', 2.4: 'Redeemed' }
  for (const [section, name] of Object.entries(bodies)) {
    const { properties, required } = components.schemas[name]
    for (const field of EXTENSIONS) delete properties[field]
    // 2.4 has the failure's field too, which is another schema.
    const names = Object.keys(properties).concat(name === 'Redeemed' ? 'error' : [])
    const namesOf = (fields: string[][]) => fields.flatMap(([cell]) => codes(cell!))
    assert.deepEqual(namesOf(fieldsIn(section)), names, name)
    const listed = namesOf(fieldsIn(section).filter(([, , isRequired]) => isRequired === 'no'))
    const optional = Object.keys(properties).filter(field => !required.includes(field))
    assert.deepEqual(listed, optional, `${name}: what is not required`)
  }
  for (const field of Object.keys(components.schemas.Solution.properties.environment.properties))
    assert.ok(codes(CONTRACT.get('2.2')!).includes(field), field)
  for (const field of EXTENSIONS) assert.ok(codes(CONTRACT.get('4.2')!).includes(field), field)
  for (const field of Object.keys(components.schemas.Redemption.properties))
    assert.ok(codes(CONTRACT.get('4.3')!).includes(field), field)
})

test('contract.md has the statuses and codes of the OpenAPI document, and each is an outcome', () => {
  const outcomes = Object.values(OUTCOMES).map(({ status, code }) => `${status} ${code}`)
  // | endpoint | status | when | codes |
  const errors = rowsOf(CONTRACT.get('7')!.split('\n'), /^`(GET|POST) /)
  for (const section of ['4.1', '4.2', '4.3']) {
    const [, endpoint, method, path] = /^[\d.]+ ((\w+) (\S+))$/m.exec(CONTRACT.get(section)!)!
    const own = errors.filter(([cell]) => codes(cell!).includes(endpoint!))
    const listed = own.flatMap(([, status, , list]) => codes(list!).map(code => `${status} ${code}`))
    const { 200: _, ...refusals } = OPENAPI.paths[path!][method!.toLowerCase()].responses
    const documented = Object.keys(refusals).flatMap(status => {
      const { code } = refusals[status].content['application/json'].schema.properties
      return code.enum.map((one: string) => `${status} ${one}`)
    })
    assert.deepEqual(listed.sort(), documented.sort(), endpoint)
    const invented = listed.filter(one => !outcomes.includes(one))
    assert.deepEqual(invented, [], endpoint)
    // The section itself names the statuses that are the contract's. **Decided** marks what is a decision of powgate.
    const fixed = own.filter(([, , when]) => !when!.includes('**Decided**')).map(([, status]) => status)
    const named = /^\| errors \| ([\d, ]+) \(§7\) \|$/m.exec(CONTRACT.get(section)!)![1]
    assert.equal(named, fixed.join(', '), endpoint)
  }
})

test('contract.md has the limits and constants of the settings', () => {
  const limits = rowsOf(CONTRACT.get('8')!.split('\n'), /^`(GET|POST) /)
  const listed = limits.map(([, , limit, setting]) => [...codes(setting!), limit])
  const defaults = Object.entries<Setting>(SETTINGS).map(([name, { fallback }]) => [name, fallback])
  const known = defaults.filter(([name]) => name!.startsWith('POWGATE_LIMIT_'))
  assert.deepEqual(listed, known)
  for (const [endpoint, , , setting] of limits) {
    const { about } = SETTINGS[codes(setting!)[0] as SettingName]
    assert.ok(about.includes(`: ${codes(endpoint!)[0]!.split(' ')[1]}`), `${setting} is not of ${endpoint}`)
  }
  const constants = rowsOf(CONTRACT.get('8')!.split('\n'), /^(lifetime|length|difficulty|hash)/)
  const values = constants.map(([, value]) => value)
  assert.deepEqual(values, [
    `${SETTINGS.POWGATE_TOKEN_SECONDS.fallback} s, which are 5 minutes`,
    `${NONCE_LENGTH} hexadecimal characters`,
    `${DIFFICULTY_MIN} to ${DIFFICULTY_MAX} leading zero bits, adaptive`,
    'sha256',
  ])
})

test('limits.md lists every endpoint with its limits, metrics.md every value of `endpoint`', () => {
  // | endpoints | per address | per address and site | per API key |, each limit with words after the number
  const listed = rows('docs/reference/limits.md', /^`\/[a-z]/).flatMap(([paths, ...quotas]) =>
    codes(paths!).map(path => [path, ...quotas.map(quota => quota.replace(/ .*/, ''))]),
  )
  const known = Object.entries(ENDPOINTS).map(([name, { limits }]) => {
    const quotaOf = (policy: Policy) => limits.find(own => own.policy === policy)?.limit
    const quotas = (['address', 'address-site', 'api-key'] as const).map(quotaOf)
    return [`/${name}`, ...quotas.map(limit => (limit === undefined ? '' : String(CONTRACT_LIMITS[limit])))]
  })
  assert.deepEqual(listed, known)
  const labels = /^- (`endpoint` is .*)$/m.exec(textOf('docs/reference/metrics.md'))![1]!
  assert.deepEqual(codes(labels), ['endpoint', ...ENDPOINT_LABELS])
})

test("README's picture shows the widget of this tree: npm run docs:images -- widget makes it anew", () => {
  assert.equal(textOf('docs/images/widget.sources').trim(), widgetSources())
})

test('add-a-language.md lists every text of the widget, and no translation is longer than it says', () => {
  const listed = rows('docs/howto/add-a-language.md', /^`\w+`/).flatMap(([keys, , longest]) =>
    codes(keys!).map(key => [key, Number(longest)] as const),
  )
  assert.deepEqual(listed.map(([key]) => key).sort(), Object.keys(ENGLISH).sort())
  const translations = LANGUAGES.map(code => JSON.parse(textOf(`src/widget/texts/${code}.json`)))
  for (const texts of [ENGLISH, ...translations])
    for (const [key, longest] of listed) assert.ok(texts[key].length <= longest, `${key}: ${texts[key]}`)
})

test('the runbook has an entry for each alert, which links to it', () => {
  const alert = /- alert: (\w+)[\s\S]*?severity: (\w+)[\s\S]*?runbook_url: "[^"#]*#(\w+)"/g
  const rules = [...textOf('src/dashboard/alerts.yml').matchAll(alert)]
  /** The name as a heading, the severity in bold, and somewhere below what to do. */
  const entry = /^## (\w+)\n\n\*\*(\w+)\.\*\* [\s\S]*?\n\*\*Do[:,]/gm
  const entries = [...textOf('docs/runbook.md').matchAll(entry)]
  const told = entries.map(
    ([, name, severity]) => `${name} ${severity!.toLowerCase()} ${name!.toLowerCase()}`,
  )
  const known = rules.map(([, name, severity, anchor]) => `${name} ${severity} ${anchor}`)
  assert.deepEqual(told.sort(), known.sort())
})

test('widget.md lists the code of every warning on the console', () => {
  const { prose } = read('docs/reference/widget.md')
  const start = prose.indexOf('## When nothing happens')
  const end = prose.indexOf('## Style and accessibility')
  const listed = rowsOf(prose.slice(start, end), /^`[a-z-]+`$/).flatMap(([code]) => codes(code!))
  // Codes are in calls of warnOnce, and begin the rows of a table.
  const inCode = textOf('src/widget/advice.ts').matchAll(/(?:warnOnce\(|^ {2})'([a-z-]+)'/gm)
  assert.deepEqual(listed.sort(), Array.from(inCode, ([, code]) => code).sort())
})

test('limits.md lists every signal with its weight', () => {
  const listed = rows('docs/reference/limits.md', /^`[a-z][A-Za-z]+`$/)
  const weights = listed.map(([signal, weight]) => [codes(signal!)[0], Number(weight)])
  assert.deepEqual(weights, Object.entries(SCORE_WEIGHTS))
})

test('difficulty.md lists every network whose proofs are counted, with what costs nothing', () => {
  const rowsFor = (version: string, { prefixBits, free }: NetworkPricing) =>
    (['owner', 'wide'] as const).map(level => [`${version} /${prefixBits[level]}`, `${free[level]}`])
  const known = [...rowsFor('IPv4', PRICING.v4), ...rowsFor('IPv6', PRICING.v6)]
  assert.deepEqual(rows('docs/explain/difficulty.md', /^IPv[46] \/\d+$/), known)
})

/** Fields that share a flag have one row, by the name of their group. */
function fieldRow(field: SiteField): string[] {
  const { name, path, form, about, plan, flag, falseFlag, unsetFlag } = field
  const sharing = FIELDS.filter(other => other === field || (flag !== undefined && other.flag === flag))
  const defaults = new Set(sharing.map(field => defaultText(field) ?? 'required'))
  const flags = [flag, falseFlag, unsetFlag].filter(name => name !== undefined).map(name => `\`--${name}\``)
  return [
    `\`${sharing.length > 1 ? path[0] : name}\``,
    flag === undefined ? '`site disable`' : flags.join(', '),
    defaults.size === 1 ? [...defaults].join() : '[by signal](limits.md#score)',
    form.schema.description,
    plan === undefined ? about : `${about}; plan ${plan}`,
  ]
}

test('sites.md lists every setting of a site', () => {
  /** Whether it is the first of the fields that share its flag. */
  const isFirst = ({ flag }: SiteField, index: number) =>
    flag === undefined || FIELDS.findIndex(other => other.flag === flag) === index
  assertTable('docs/reference/sites.md', /^`[a-z]\w*(\.\w+)?`$/, FIELDS.filter(isFirst).map(fieldRow))
})

test('odd-requests.md tells what becomes of requests that servers read in different ways', () => {
  const table = conformanceTable()
  const isThere = textOf('docs/evidence/odd-requests.md').includes(`\n${table}\n`)
  assert.ok(isThere, `it should have this table:\n${table}`)
})

test('cli.md lists every command', () => {
  const expected = COMMANDS.map(({ name, positionals, about }) => {
    return [`\`${[name, ...positionals.map(positionalWord)].join(' ')}\``, about]
  })
  assertTable('docs/reference/cli.md', /^`[a-z]/, expected)
})

test('architecture.md lists every folder of src/ and of the top level, and every dependency', () => {
  const ignored = textOf('.gitignore').split('\n')
  const foldersIn = (folder: string) => {
    const entries = readdirSync(join(ROOT, folder), { withFileTypes: true })
    const names = entries.filter(entry => entry.isDirectory()).map(({ name }) => `${name}/`)
    const isShown = (name: string) => !name.startsWith('.') && !ignored.includes(name)
    return names.filter(isShown).map(name => join(folder, name))
  }
  const folders = [...foldersIn('.').filter(folder => folder !== 'src/'), ...foldersIn('src')]
  const listed = rows('docs/architecture.md', /^`[\w/]+\/`$/).map(([folder]) => folder)
  assert.deepEqual(listed.sort(), folders.map(folder => `\`${folder}\``).sort())

  const { dependencies, devDependencies } = JSON.parse(textOf('package.json'))
  const explained = codes(read('docs/architecture.md').prose.join('\n'))
  for (const name of Object.keys({ ...dependencies, ...devDependencies }))
    assert.ok(explained.includes(name), `${name} is not explained`)
})
