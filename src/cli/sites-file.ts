/**
 * Sites as a file. `powgate site export` writes such a file, and `powgate site schema` prints its schema. `powgate apply`
 * changes the sites of a store to those of the file, in one atomic step.
 */

import { randomBytes } from 'node:crypto'
import { DEMO_SITE_KEY } from '../demo/site.ts'
import { newSiteKey } from '../domain/site.ts'
import { type ApplyPlan, type PlannedChange, planApply, type SiteEntry, sitesFile } from '../sites/file.ts'
import { AdminError, authorOfCommand, findSite, written } from '../sites/sites.ts'
import { PROGRAM } from '../version.ts'
import type { CommandEntry, Input } from './command.ts'
import { fileValue, readBytes } from './files.ts'
import { printChanges, printJson, printLine } from './output.ts'
import { SITE_KEY } from './site-flags.ts'
import { withStore, writeToStore } from './site-store.ts'

export const SITES_FILE_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'site export',
    about:
      'Print sites as a file for apply, without API keys: all, that of a first start too, but not that of /demo; or those named.',
    positionals: [{ ...SITE_KEY, isOptional: true, repeats: true }],
    example: '> sites.json',
    run: runExport,
  },
  {
    name: 'site schema',
    about: 'Print the JSON Schema of such a file, for editors and checks.',
    example: '> sites.schema.json',
    run: runSchema,
  },
  {
    name: 'apply',
    about: 'Make the sites what a file says: all of it, or nothing if there is a mistake in it.',
    flags: {
      file: {
        about: 'File as site export writes it; - is standard input.',
        short: 'f',
        isRequired: true,
        value: fileValue('a file, or - for standard input'),
      },
      'dry-run': { about: 'Only print what would change.' },
      'disable-missing': { about: 'Disable sites that the file does not name, but for the demo page.' },
    },
    example: '-f sites.json --dry-run',
    run: runApply,
  },
]

const PROBLEMS_MAX = 100

async function runApply(input: Input): Promise<void> {
  const author = authorOfCommand('apply')
  const isDry = input.has('dry-run')
  const entries = await readEntries(await readBytes('file', input.required('file')))
  const [plan, store] = await writeToStore(async store => {
    const plan = planApply(entries, await store.listSites(), {
      disablesMissing: input.has('disable-missing'),
      neverMissing: new Set([DEMO_SITE_KEY]),
      newSiteKey: () => newSiteKey(randomBytes(96)),
      now: Date.now(),
    })
    if (plan.problems.length > 0) throw new AdminError(lines(plan.problems))
    const changes = plan.changes.map(({ before, after }) => ({ site: after, expected: before }))
    if (changes.length > 0 && !isDry) await written(store, changes, author)
    return plan
  })
  if (input.has('json')) printJson({ ...planJson(plan, isDry), store })
  else printPlan(plan, isDry, store)
}

async function readEntries(bytes: Uint8Array): Promise<readonly SiteEntry[]> {
  const { parseSitesFile } = await import('../sites/parse-file.ts')
  const parsed = parseSitesFile(bytes)
  if ('problems' in parsed) throw new AdminError(lines(parsed.problems))
  return parsed.value
}

function lines(problems: readonly string[]): string {
  const shown = problems.slice(0, PROBLEMS_MAX)
  const more = problems.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
}

function planJson({ changes, unchanged }: ApplyPlan, isDry: boolean) {
  return {
    dryRun: isDry,
    changed: changes.map(change => ({
      action: change.action,
      // The site's key is drawn when the change is made.
      siteKey: isDry && change.isKeyDrawn ? null : change.after.siteKey,
      name: change.after.name,
      changes: change.changes,
    })),
    unchanged,
  }
}

const DONE = { create: 'created', change: 'changed', disable: 'disabled' } as const

function printPlan({ changes, unchanged }: ApplyPlan, isDry: boolean, store: string): void {
  if (changes.length === 0) {
    const sites = unchanged === 1 ? '1 site is' : `${unchanged} sites are`
    printLine(`There is nothing to change in ${store}: ${sites} as the file says.`)
    return
  }
  for (const change of changes) printChange(change, isDry)
  const counts = Object.entries(DONE)
    .map(([action, done]) => ({ done, count: changes.filter(change => change.action === action).length }))
    .filter(({ count }) => count > 0)
    .map(({ done, count }) => `${count} ${done}`)
  printLine(
    '',
    `${isDry ? 'Nothing was written. It would be in' : 'In'} ${store}: ${counts.join(', ')}; ${unchanged} as the file says already.`,
  )
  const created = changes.filter(({ action }) => action === 'create')
  if (created.length === 0 || isDry) return
  printLine('', 'New sites have no API key yet:', '')
  for (const { after } of created) printLine(`  ${PROGRAM} key create ${after.siteKey}`)
}

function printChange(change: PlannedChange, isDry: boolean): void {
  const { action, after, changes } = change
  const key = isDry && change.isKeyDrawn ? 'with a new key' : after.siteKey
  printLine(`${after.name} (${key}): ${isDry ? 'would be ' : ''}${DONE[action]}`)
  printChanges(changes, action === 'create')
}

async function runExport(input: Input): Promise<void> {
  const siteKeys = input.texts(SITE_KEY.name)
  const sites = await withStore(async store => {
    if (siteKeys !== undefined)
      return Promise.all([...new Set(siteKeys)].map(siteKey => findSite(store, siteKey)))
    return (await store.listSites()).filter(({ siteKey }) => siteKey !== DEMO_SITE_KEY)
  })
  printDocument(input, sitesFile(sites))
}

async function runSchema(input: Input): Promise<void> {
  const { SITES_FILE_SCHEMA } = await import('../sites/schema.ts')
  printDocument(input, SITES_FILE_SCHEMA)
}

/** JSON in many lines, so that version control shows each change. */
function printDocument(input: Input, document: unknown): void {
  printJson(document, input.has('json') ? undefined : 2)
}
