/** Reads and checks a file of sites as a whole. A file with any mistake is not used. */

import { Ajv, type ErrorObject } from 'ajv'
import type { PolicyOverrides } from '../domain/difficulty.ts'
import { didYouMean } from '../domain/nearest.ts'
import { SITE_DEFAULTS, type SiteDifficulty, type SiteSettings } from '../domain/site.ts'
import { TEST_KEYS } from '../domain/test-keys.ts'
import { FILE_FORMAT, FILE_VERSION, type SiteEntry } from './file.ts'
import { CIDR, NAME, ORIGIN, type ValueRule } from './rules.ts'
import { POLICY_SCHEMA, SITES_FILE_SCHEMA } from './schema.ts'
import { defaultSettings, difficultyProblem } from './sites.ts'

/** Longest value that an error line repeats. */
const GOT_CHARACTERS_MAX = 80

type ParsedSitesFile =
  | { readonly entries: readonly SiteEntry[] }
  /** One line for each mistake, which starts with the mistake's place. */
  | { readonly problems: readonly string[] }

const ajv = new Ajv({ strict: true, meta: false, validateSchema: false, allErrors: true, verbose: true })
const validate = ajv.compile(SITES_FILE_SCHEMA)

/** An entry that passed the schema. Its groups may be incomplete. */
type FileSite = { siteKey?: string; name: string } & {
  [Field in keyof Omit<SiteSettings, 'name'>]?: SiteSettings[Field] extends unknown[]
    ? SiteSettings[Field]
    : SiteSettings[Field] extends object | undefined
      ? Partial<NonNullable<SiteSettings[Field]>>
      : SiteSettings[Field]
}

/** Parses a file of a policy: any of its numbers. */
export function parsePolicyFile(
  bytes: Uint8Array,
): { readonly policy: PolicyOverrides } | { readonly problems: readonly string[] } {
  const read = readJson(bytes)
  if ('problems' in read) return read
  const { json } = read
  if (!isRecord(json))
    return {
      problems: [`the file: expected ${(POLICY_SCHEMA as SchemaPart).description}, got ${gotText(json)}`],
    }
  const problems = new Problems()
  const validatePolicy = ajv.compile(POLICY_SCHEMA)
  if (!validatePolicy(json)) for (const error of validatePolicy.errors!) problems.addError(error)
  return problems.lines.length > 0 ? { problems: problems.lines } : { policy: json as PolicyOverrides }
}

export function parseSitesFile(bytes: Uint8Array): ParsedSitesFile {
  const read = readJson(bytes)
  if ('problems' in read) return read
  const { json } = read
  const strange = formatProblem(json)
  if (strange !== undefined) return { problems: [strange] }
  const problems = new Problems()
  if (!validate(json)) for (const error of validate.errors!) problems.addError(error)
  const { sites } = json as { sites: unknown }
  if (Array.isArray(sites)) {
    for (const [index, site] of sites.entries()) checkSite(site, `sites[${index}]`, problems)
    checkIdentities(sites, problems)
  }
  if (problems.lines.length > 0) return { problems: problems.lines }
  return { entries: (sites as FileSite[]).map(entryOf) }
}

function readJson(bytes: Uint8Array): { readonly json: unknown } | { readonly problems: readonly string[] } {
  const text = decoded(bytes)
  if (text === undefined) return { problems: ['the file is not UTF-8'] }
  try {
    return { json: JSON.parse(text) }
  } catch (error) {
    return { problems: [`the file is not JSON: ${oneLine((error as Error).message)}`] }
  }
}

/** undefined if the bytes are not UTF-8. A byte order mark, which editors leave, is no part of the text. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Tells whether the file has another format or version; other mistakes are then not reported. */
function formatProblem(json: unknown): string | undefined {
  if (!isRecord(json)) {
    return `the file: expected an object with format, version and sites, got ${gotText(json)}`
  }
  const { format, version } = json
  if (format !== FILE_FORMAT) return `format: expected ${JSON.stringify(FILE_FORMAT)}, got ${gotText(format)}`
  if (version === FILE_VERSION) return undefined
  const age =
    typeof version !== 'number' ? '' : version > FILE_VERSION ? '; the file is newer' : '; the file is older'
  return `version: expected ${FILE_VERSION}, got ${gotText(version)}${age}`
}

/** Mistakes by their place. Only the first mistake of a place is kept, since further ones repeat it. */
class Problems {
  readonly #lines = new Map<string, string>()
  /** Groups with a mistake in one of their fields. */
  readonly #groups = new Set<string>()

  /** Ordered by site. */
  get lines(): string[] {
    const siteOf = (line: string) => Number(/^sites\[(\d+)\]/.exec(line)?.[1] ?? -1)
    return [...this.#lines.values()].sort((a, b) => siteOf(a) - siteOf(b))
  }

  hasInside(group: string): boolean {
    return this.#groups.has(group)
  }

  add(path: string, text: string): void {
    this.#groups.add(path.slice(0, Math.max(0, path.lastIndexOf('.'))))
    if (!this.#lines.has(path)) this.#lines.set(path, `${path}: ${text}`)
  }

  addError({ instancePath, keyword, params, parentSchema, data }: ErrorObject): void {
    const path = pathOf(instancePath)
    const { properties = {}, description } = parentSchema as SchemaPart
    if (keyword === 'required') {
      const name = String(params.missingProperty)
      this.add(inside(path, name), `missing; expected ${properties[name]?.description}`)
    } else if (keyword === 'additionalProperties') {
      const known = Object.keys(properties)
      const name = String(params.additionalProperty)
      const problem = `there is no such field${didYouMean(name, known)}`
      this.add(inside(path, name), `${problem}; expected one of ${known.join(', ')}`)
    } else {
      this.add(path, `expected ${description}, got ${gotText(data)}`)
    }
  }
}

interface SchemaPart {
  readonly properties?: Readonly<Record<string, SchemaPart>>
  readonly description?: string
}

/** Rules that a schema cannot express. Values of a wrong type are reported by the schema. */
const TEST_SITE_KEYS: ReadonlySet<unknown> = new Set(Object.values(TEST_KEYS).map(({ siteKey }) => siteKey))

function checkSite(site: unknown, path: string, problems: Problems): void {
  if (!isRecord(site)) return
  checkText(NAME, site.name, `${path}.name`, problems)
  // A stored test key would work even when test keys are switched off.
  if (TEST_SITE_KEYS.has(site.siteKey))
    problems.add(`${path}.siteKey`, 'expected a key of your own, got a published test key')
  checkTexts(ORIGIN, site.origins, `${path}.origins`, problems)
  const { ipRules, difficulty } = site
  if (isRecord(ipRules)) {
    checkTexts(CIDR, ipRules.allow, `${path}.ipRules.allow`, problems)
    checkTexts(CIDR, ipRules.block, `${path}.ipRules.block`, problems)
  }
  if (isRecord(difficulty) && !problems.hasInside(`${path}.difficulty`)) {
    const problem =
      'base' in difficulty && 'solveMs' in difficulty
        ? 'expected base or solveMs, got both'
        : difficultyProblem({ ...SITE_DEFAULTS.difficulty, ...difficulty } as SiteDifficulty)
    if (problem !== undefined) problems.add(`${path}.difficulty`, problem)
  }
}

function checkTexts(rule: ValueRule, values: unknown, path: string, problems: Problems): void {
  if (!Array.isArray(values)) return
  for (const [index, value] of values.entries()) checkText(rule, value, `${path}[${index}]`, problems)
}

function checkText(rule: ValueRule, value: unknown, path: string, problems: Problems): void {
  if (typeof value !== 'string' || rule.accepts(value)) return
  const meant = rule.suggest?.(value)
  const suggestion = meant === undefined ? '' : `; did you mean ${meant}?`
  problems.add(path, `expected ${rule.expects}, got ${gotText(value)}${suggestion}`)
}

/** No site key may occur twice, and no name may where names identify the sites. */
function checkIdentities(sites: readonly unknown[], problems: Problems): void {
  const byKey = new Map<string, number>()
  const byName = new Map<string, number[]>()
  for (const [index, site] of sites.entries()) {
    if (!isRecord(site)) continue
    const { siteKey, name } = site
    if (typeof siteKey === 'string') {
      const first = byKey.get(siteKey)
      if (first === undefined) byKey.set(siteKey, index)
      else problems.add(`sites[${index}].siteKey`, `${siteKey} is the key of sites[${first}] too`)
    }
    if (typeof name === 'string') byName.set(name.trim(), [...(byName.get(name.trim()) ?? []), index])
  }
  for (const [name, indexes] of byName) {
    const unkeyed = indexes.filter(index => (sites[index] as FileSite).siteKey === undefined)
    if (indexes.length < 2) continue
    for (const index of unkeyed) {
      const other = indexes.find(one => one !== index)
      const text = `${gotText(name)} is the name of sites[${other}] too; expected a siteKey to tell them apart`
      problems.add(`sites[${index}].name`, text)
    }
  }
}

function entryOf({ siteKey, ...given }: FileSite): SiteEntry {
  const defaults = defaultSettings(given.name)
  const { origins = [], ipRules = {} } = given
  const settings: SiteSettings = {
    ...defaults,
    ...given,
    name: given.name.trim(),
    origins: [...new Set(origins)],
    difficulty: { ...defaults.difficulty, ...given.difficulty },
    ipRules: { allow: [...new Set(ipRules.allow)], block: [...new Set(ipRules.block)] },
  }
  return { siteKey, settings }
}

/** `/sites/3/origins/0` -> `sites[3].origins[0]` */
function pathOf(instancePath: string): string {
  return instancePath
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : inside(path, part)), '')
}

function inside(path: string, name: string): string {
  const word = /^[\w$-]{1,40}$/.test(name) ? name : gotText(name)
  return path === '' ? word : `${path}.${word}`
}

/** A value as one short printable line. */
function gotText(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = oneLine(JSON.stringify(value))
  return text.length <= GOT_CHARACTERS_MAX ? text : `${text.slice(0, GOT_CHARACTERS_MAX)}...`
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
