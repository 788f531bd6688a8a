/** `powgate site export`, `site schema` and `apply`, which writes all changes in one atomic step. */

import { randomBytes } from 'node:crypto'
import { configFlag } from '../config/config.ts'
import { DEMO_SITE_KEYS } from '../demo/site.ts'
import {
  type ApiKeyRecord,
  isExpired,
  isSiteKey,
  newSiteKey,
  revisionOf,
  type SiteRecord,
} from '../domain/site.ts'
import { diffWithFile, type FileChange, type FileContent, type FileDiff, sitesFile } from '../sites/file.ts'
import { CommandError, UsageError } from '../sites/rules.ts'
import { authorOfCommand, commit, deletion, findSite, newKey } from '../sites/sites.ts'
import { siteWarnings } from '../sites/warnings.ts'
import type { HostNote } from '../store/hosts.ts'
import { PROGRAM } from '../version.ts'
import type { CommandEntry, Input } from './command.ts'
import { fileValue, readBytes } from './files.ts'
import { onLostOutput, printChanges, printJson, printLine } from './output.ts'
import { SITE_KEY } from './site-flags.ts'
import { withStore } from './site-store.ts'

export const SITES_FILE_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'site export',
    about: 'Print sites as a file for apply: those named, or all but that of /demo.',
    positionals: [{ ...SITE_KEY, isOptional: true, repeats: true }],
    flags: {
      whole: {
        about: 'For another store: with the hashes of API keys, and when sites were created and changed.',
      },
      'from-service': {
        about:
          'Ask the running service, which still has sites and the hashes of API keys after its Redis has lost them.',
      },
    },
    example: '> sites.json',
    run: runExport,
  },
  {
    name: 'site schema',
    about: 'Print the JSON Schema of such a file, for editors and checks.',
    example: '> sites.schema.json',
    run: runSchema,
  },
]

export const APPLY_COMMAND: CommandEntry = {
  name: 'apply',
  about: 'Create and change sites as a file says: all of them, or none if it has a mistake.',
  flags: {
    file: {
      about: 'File as site export writes it; - is standard input.',
      short: 'f',
      isRequired: true,
      value: fileValue('a file, or - for standard input'),
    },
    'dry-run': { about: 'Only print what would change.' },
    'disable-missing': { about: 'Disable sites that the file does not name, except that of the demo page.' },
    prune: {
      about: 'Delete sites that the file does not name, with their API keys, for good.',
      contradicts: 'disable-missing',
    },
  },
  example: '-f sites.json --dry-run',
  run: runApply,
}

const PROBLEMS_MAX = 100

async function runApply(input: Input): Promise<void> {
  const author = authorOfCommand('apply')
  const isDry = input.has('dry-run')
  // The fate of sites that the file does not name.
  const fate = input.has('prune') ? 'delete' : input.has('disable-missing') ? 'disable' : 'stay'
  const { sites, apiKeys } = await readContent(await readBytes('file', input.required('file')))
  const [diff, place] = await withStore(async store => {
    const stored = await store.listSites()
    const diff = diffWithFile(sites, stored, {
      missing: fate,
      neverMissing: DEMO_SITE_KEYS,
      // The real run draws another key, so a dry run has the name in its place.
      newSiteKey: name => (isDry ? name : newSiteKey(randomBytes(96))),
      now: Date.now(),
    })
    const siteKeys = new Set([...sites, ...stored].map(({ siteKey }) => siteKey))
    for (const { action, after } of diff.changes) if (action === 'delete') siteKeys.delete(after.siteKey)
    const created = diff.changes.filter(({ action, isKeyDrawn }) => action === 'create' && !isKeyDrawn)
    const keysFound = await Promise.all(apiKeys.map(({ id }) => store.readApiKey(id)))
    const tombstones = await Promise.all(created.map(({ after }) => store.readSite(after.siteKey)))
    const problems = [
      ...diff.problems,
      ...(fate === 'stay' || sites.length > 0 || diff.changes.length === 0
        ? []
        : [
            `sites: the file has none, so every site would be ${DONE[fate]} (${diff.changes.length}). If you mean that: ${PROGRAM} site ${fate}, one by one`,
          ]),
      ...tombstones.flatMap(site =>
        site === undefined ? [] : [`sites: ${site.siteKey} was deleted, and its key is not made again`],
      ),
      ...apiKeys.flatMap((key, index) => keyProblems(key, keysFound[index], siteKeys)),
    ]
    if (problems.length > 0) throw new CommandError(lines(problems))
    const now = Date.now()
    const allKeys = await store.listApiKeys()
    const present = new Map(allKeys.map(key => [key.id, key]))
    // API keys of the file that the store lacks, or has an older revision of.
    const laterKeys = apiKeys
      .filter(key => isLater(key, present.get(key.id)))
      .map(key => ({ ...key, createdAt: key.createdAt || now }))
    const keys = new Map([...allKeys, ...laterKeys].map(key => [key.id, key]))
    const valid = [...keys.values()].filter(key => key.revokedAt === null && !isExpired(key, now))
    // The file may ask for API keys by name only. They are made here, unless a site has a valid one of that name.
    const made = diff.keys
      .filter(({ siteKey, name }) => !valid.some(key => key.siteKey === siteKey && key.name === name))
      .map(({ siteKey, name }) => newKey(siteKey, { name }, now))
    const changes = [
      ...diff.changes.flatMap(({ action, before, after }) =>
        action === 'delete' ? deletion(after, allKeys, now) : [{ site: after, expected: before }],
      ),
      ...made.map(({ record }) => ({ apiKey: record, expected: undefined })),
      ...laterKeys.map(apiKey => ({ apiKey, expected: present.get(apiKey.id) })),
    ]
    if (changes.length > 0 && !isDry) await commit(store, changes, author)
    const { living: hosts } = await store.livingHosts()
    return { ...diff, laterKeys, made, hosts }
  })
  if (!isDry) onLostOutput(`What apply was to change in ${place} is changed; keys that it made nobody knows.`)
  if (input.has('json')) printJson({ ...diffJson(diff, isDry), store: place })
  else printDiff(diff, isDry, place)
}

function isLater(key: ApiKeyRecord, stored: ApiKeyRecord | undefined): boolean {
  return stored === undefined || revisionOf(key) > revisionOf(stored)
}

/** @param stored may be deleted */
function keyProblems(
  key: ApiKeyRecord,
  stored: ApiKeyRecord | undefined,
  siteKeys: ReadonlySet<string | undefined>,
): string[] {
  const { id, siteKey, secretSha256 } = key
  if (!siteKeys.has(siteKey))
    return [`apiKeys: expected the site of ${id} in the file, got none with the key ${siteKey}`]
  if (stored?.deletedAt !== undefined)
    return [`apiKeys: ${id} was deleted with its site, and is not made again`]
  const isSame = stored?.siteKey === siteKey && stored.secretSha256 === secretSha256
  return isSame || isLater(key, stored)
    ? []
    : [
        `apiKeys: ${id} is in the store with another site or secretSha256, and stays so: a new key has an id of its own`,
      ]
}

async function readContent(bytes: Uint8Array): Promise<FileContent> {
  const { parseSitesFile } = await import('../sites/parse-file.ts')
  const parsed = parseSitesFile(bytes)
  if ('problems' in parsed) throw new CommandError(lines(parsed.problems))
  return parsed.value
}

function lines(problems: readonly string[]): string {
  const shown = problems.slice(0, PROBLEMS_MAX)
  const more = problems.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : []), 'nothing was written'].join('\n')
}

type WholeDiff = FileDiff & {
  readonly laterKeys: readonly ApiKeyRecord[]
  /** Keys with their secrets, which are shown once. */
  readonly made: readonly ReturnType<typeof newKey>[]
  readonly hosts: readonly HostNote[]
}

function diffJson({ changes, unchanged, laterKeys, made, hosts }: WholeDiff, isDry: boolean) {
  const apiKeysMade = made.map(({ record: { siteKey, name }, apiKey }) => {
    return { siteKey: isSiteKey(siteKey) ? siteKey : null, name, ...(isDry ? {} : { apiKey }) }
  })
  return {
    dryRun: isDry,
    changed: changes.map(change => ({
      action: change.action,
      siteKey: isDry && change.isKeyDrawn ? null : change.after.siteKey,
      name: change.after.name,
      changes: change.changes,
      warnings: siteWarnings(change.after, hosts),
    })),
    unchanged,
    ...(laterKeys.length > 0 ? { apiKeysAdded: laterKeys.map(({ id }) => id) } : {}),
    ...(made.length > 0 ? { apiKeysMade } : {}),
  }
}

const DONE = { create: 'created', change: 'changed', disable: 'disabled', delete: 'deleted' } as const

function printDiff(
  { changes, unchanged, laterKeys, made, hosts }: WholeDiff,
  isDry: boolean,
  store: string,
): void {
  if (changes.length + laterKeys.length + made.length === 0) {
    const sites = unchanged === 1 ? '1 site is' : `${unchanged} sites are`
    printLine(`There is nothing to change in ${store}: ${sites} as the file says.`)
    return
  }
  for (const change of changes) {
    printChange(change, isDry)
    for (const warning of siteWarnings(change.after, hosts)) printLine(`    warning: ${warning}`)
  }
  for (const { id, siteKey } of laterKeys)
    printLine(`API key ${id} of ${siteKey}: ${isDry ? 'would be ' : ''}added`)
  for (const { record, apiKey } of made)
    printLine(
      `API key ${record.name} of ${record.siteKey}: ${isDry ? 'would be made' : `${apiKey} (secret, not shown again)`}`,
    )
  const counts = Object.entries(DONE)
    .map(([action, done]) => ({ done, count: changes.filter(change => change.action === action).length }))
    .filter(({ count }) => count > 0)
    .map(({ done, count }) => `${count} ${done}`)
  const keys = { added: laterKeys.length, made: made.length }
  for (const [done, count] of Object.entries(keys))
    if (count > 0) counts.push(`${count} API ${count === 1 ? 'key' : 'keys'} ${done}`)
  printLine(
    '',
    `${isDry ? 'Nothing was written. It would be in' : 'In'} ${store}: ${counts.join(', ')}; ${unchanged} as the file says already.`,
  )
  const keyed = new Set([...laterKeys, ...made.map(({ record }) => record)].map(({ siteKey }) => siteKey))
  const created = changes.filter(({ action, after }) => action === 'create' && !keyed.has(after.siteKey))
  if (created.length === 0 || isDry) return
  printLine('', 'New sites have no API key yet:', '')
  for (const { after } of created) printLine(`  ${PROGRAM} key create ${after.siteKey}${configFlag()}`)
}

function printChange(change: FileChange, isDry: boolean): void {
  const { action, after, changes } = change
  const key = isDry && change.isKeyDrawn ? 'with a new key' : after.siteKey
  printLine(`${after.name} (${key}): ${isDry ? 'would be ' : ''}${DONE[action]}`)
  printChanges(changes, action === 'create')
}

async function runExport(input: Input): Promise<void> {
  const siteKeys = input.texts(SITE_KEY.name)
  if (input.has('from-service')) {
    if (siteKeys !== undefined) throw new UsageError('--from-service: expected no site keys beside it')
    const { recordsOfService } = await import('./service-records.ts')
    const { sites, apiKeys } = await recordsOfService()
    const isKept = ({ deletedAt }: { readonly deletedAt?: number }) => deletedAt === undefined
    printDocument(input, sitesFile(sites.filter(isKept).filter(isOwn), apiKeys.filter(isKept)))
    return
  }
  const [file] = await withStore(async store => {
    const sites =
      siteKeys === undefined
        ? (await store.listSites()).filter(isOwn)
        : await Promise.all([...new Set(siteKeys)].map(siteKey => findSite(store, siteKey)))
    return sitesFile(sites, input.has('whole') ? await store.listApiKeys() : undefined)
  })
  printDocument(input, file)
}

const isOwn = ({ siteKey }: SiteRecord) => !DEMO_SITE_KEYS.has(siteKey)

async function runSchema(input: Input): Promise<void> {
  const { SITES_FILE_SCHEMA } = await import('../sites/schema.ts')
  printDocument(input, SITES_FILE_SCHEMA)
}

/** Prints many lines, because version control shows each change. */
function printDocument(input: Input, document: unknown): void {
  printJson(document, input.has('json') ? undefined : 2)
}
