/**
 * Reads an export file (export-file.ts). Its mistakes against the schema come from ajv, those that a schema cannot express from
 * `checkSite` and below. Each `description` in the schema completes "expected ...".
 */

import {
  BASE_BITS,
  completed,
  difficultyProblem,
  FIELDS,
  type SiteSettings,
  valueIn,
} from '../domain/site-fields.ts'
import { TEST_KEYS } from '../domain/test-keys.ts'
import { NAME, type ValueRule } from '../domain/value-forms.ts'
import { cut } from '../log/redaction.ts'
import { Ajv, type ErrorObject } from '../packages/ajv.ts'
import { didYouMean } from '../words/nearest.ts'
import type { FileContent, SiteEntry } from './export-file.ts'
import { EXPORT_FILE_SCHEMA } from './schema.ts'

const GOT_CHARACTERS_MAX = 80

type Parsed =
  | { readonly value: FileContent }
  /** Has a line for each mistake, which starts with its place in the file. */
  | { readonly problems: readonly string[] }

const ajv = new Ajv({ strict: true, meta: false, validateSchema: false, allErrors: true, verbose: true })

type Fields = Readonly<Record<string, unknown>>
/** A site of the file. Its groups, such as `limits`, may lack members. */
type FileSite = Partial<SiteEntry> & { readonly name: string }

export function parseExportFile(bytes: Uint8Array): Parsed {
  let value: unknown
  try {
    // Some editors write a byte order mark, which the decoder skips.
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const isText = error instanceof SyntaxError
    return {
      problems: [isText ? `the file is not JSON: ${oneLine(error.message)}` : 'the file is not UTF-8'],
    }
  }
  if (!isRecord(value))
    return { problems: [`the file: expected ${EXPORT_FILE_SCHEMA.description}, got ${gotText(value)}`] }
  const problems = new Problems()
  const validate = ajv.compile(EXPORT_FILE_SCHEMA)
  if (!validate(value)) for (const error of validate.errors!) problems.addError(error)
  if (Array.isArray(value.sites)) {
    for (const [index, site] of value.sites.entries()) checkSite(site, `sites[${index}]`, problems)
    checkUnique(value.sites, 'sites', 'siteKey', problems)
    checkNames(value.sites, problems)
  }
  if (Array.isArray(value.apiKeys)) {
    for (const [index, key] of value.apiKeys.entries())
      if (isRecord(key)) checkTexts(NAME, key.name, `apiKeys[${index}].name`, problems)
    // The last of two copies would win, perhaps that of before the key was revoked.
    checkUnique(value.apiKeys, 'apiKeys', 'id', problems)
  }
  if (problems.lines.length > 0) return { problems: problems.lines }
  const { sites, apiKeys = [], deletedSites = [] } = value as unknown as Partial<FileContent>
  const entries = (sites as readonly FileSite[]).map(site => {
    const keys = [...new Set(site.keys?.map(name => name.trim()))]
    return { ...site, ...completed(site), keys }
  })
  return { value: { sites: entries, apiKeys, deletedSites } }
}

/** Keeps the first problem of each place in the file, because further ones would repeat it. */
class Problems {
  /** The problems by their paths in the file, such as `sites[3].limits.verify`. */
  readonly #lines = new Map<string, string>()

  /** The problems in the order of the sites. If the file has another format or version, nothing else is reported. */
  get lines(): string[] {
    const ofOtherFormat = this.#lines.get('format') ?? this.#lines.get('version')
    if (ofOtherFormat !== undefined) return [ofOtherFormat]
    const siteOf = (line: string) => Number(/^sites\[(\d+)\]/.exec(line)?.[1] ?? -1)
    return [...this.#lines.values()].sort((a, b) => siteOf(a) - siteOf(b))
  }

  has(path: string): boolean {
    return this.#lines.has(path)
  }

  add(path: string, text: string): void {
    if (!this.#lines.has(path)) this.#lines.set(path, `${path}: ${text}`)
  }

  addError({ instancePath, keyword, params, parentSchema, data }: ErrorObject): void {
    const path = pathOf(instancePath)
    const { properties = {}, description } = parentSchema as SchemaPart
    if (keyword === 'required') {
      const name = String(params.missingProperty)
      this.add(inside(path, name), `missing; expected ${properties[name]?.description}`)
    } else if (keyword === 'additionalProperties') {
      const names = Object.keys(properties)
      const name = String(params.additionalProperty)
      const problem = `there is no such field${didYouMean(name, names)}`
      this.add(inside(path, name), `${problem}; expected one of ${names.join(', ')}`)
    } else {
      this.add(path, `expected ${description}, got ${gotText(data)}`)
    }
  }
}

interface SchemaPart {
  readonly properties?: Readonly<Record<string, SchemaPart>>
  readonly description?: string
}

const TEST_SITE_KEYS: ReadonlySet<unknown> = new Set(Object.values(TEST_KEYS).map(({ siteKey }) => siteKey))

const OF_DIFFICULTY = FIELDS.filter(({ path }) => path[0] === 'difficulty')

/** @param path of the site, such as `sites[3]` */
function checkSite(site: unknown, path: string, problems: Problems): void {
  if (!isRecord(site)) return
  // A stored test key would work even with test keys switched off.
  if (TEST_SITE_KEYS.has(site.siteKey))
    problems.add(`${path}.siteKey`, 'expected a key of your own, got a published test key')
  for (const field of FIELDS)
    checkTexts(field.form.text, valueIn(site, field), `${path}.${field.name}`, problems)
  checkTexts(NAME, site.keys, `${path}.keys`, problems)
  if (!isRecord(site.difficulty) || OF_DIFFICULTY.some(({ name }) => problems.has(`${path}.${name}`))) return
  const hasBoth = 'base' in site.difficulty && 'solveMs' in site.difficulty
  const problem = hasBoth ? 'expected base or solveMs, got both' : difficultyProblem(difficultyOf(site))
  if (problem !== undefined) problems.add(`${path}.difficulty`, problem)
}

/** Adds the defaults, which depend on the puzzle. An unknown puzzle is reported by itself. */
function difficultyOf(site: Fields): SiteSettings['difficulty'] {
  const { puzzle, difficulty } = site as unknown as FileSite
  const known = (Object.keys(BASE_BITS) as SiteSettings['puzzle'][]).find(name => name === puzzle)
  return completed({ name: '', ...(known && { puzzle: known }), ...(difficulty && { difficulty }) })
    .difficulty
}

/** @param value a text or a list of texts; what is no text is left to the schema */
function checkTexts(text: ValueRule | undefined, value: unknown, path: string, problems: Problems): void {
  for (const [index, item] of [value].flat().entries()) {
    if (text === undefined || typeof item !== 'string' || text.accepts(item)) continue
    const meant = text.suggest?.(item)
    const suggestion = meant === undefined ? '' : `; did you mean ${meant}?`
    const place = Array.isArray(value) ? `${path}[${index}]` : path
    problems.add(place, `expected ${text.expects}, got ${gotText(item)}${suggestion}`)
  }
}

function checkUnique(entries: readonly unknown[], list: string, field: string, problems: Problems): void {
  const firsts = new Map<unknown, number>()
  for (const [index, entry] of entries.entries()) {
    const value = isRecord(entry) ? entry[field] : undefined
    if (typeof value !== 'string') continue
    const first = firsts.get(value)
    if (first === undefined) firsts.set(value, index)
    else problems.add(`${list}[${index}].${field}`, `${value} is the ${field} of ${list}[${first}] too`)
  }
}

/** The names of sites without a key must be unique. */
function checkNames(sites: readonly unknown[], problems: Problems): void {
  const byName = new Map<string, number[]>()
  for (const [index, site] of sites.entries()) {
    const name = isRecord(site) ? site.name : undefined
    if (typeof name === 'string') byName.set(name.trim(), [...(byName.get(name.trim()) ?? []), index])
  }
  for (const [name, indexes] of byName) {
    for (const index of indexes) {
      const other = indexes.find(one => one !== index)
      if (other === undefined || (sites[index] as FileSite).siteKey !== undefined) continue
      const text = `${gotText(name)} is the name of sites[${other}] too; expected a siteKey to tell them apart`
      problems.add(`sites[${index}].name`, text)
    }
  }
}

/** `/sites/3/origins/0` -> `sites[3].origins[0]` */
function pathOf(instancePath: string): string {
  return instancePath
    .split('/')
    .slice(1)
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : inside(path, part)), '')
}

function inside(path: string, name: string): string {
  const word = /^[\w$-]{1,40}$/.test(name) ? name : gotText(name)
  return path === '' ? word : `${path}.${word}`
}

function gotText(value: unknown): string {
  return cut(oneLine(JSON.stringify(value)), GOT_CHARACTERS_MAX)
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
