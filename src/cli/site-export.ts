/** `powgate site export` and `powgate site schema`. */

import { localUrl } from '../config/config.ts'
import { DEMO_SITE_KEYS } from '../demo/site.ts'
import type { CachedRecords, SiteRecord } from '../domain/site.ts'
import { CommandError, UsageError } from '../sites/errors.ts'
import { exportFile } from '../sites/export-file.ts'
import { findSite } from '../sites/sites.ts'
import type { CommandEntry, Input } from './command.ts'
import { printJson } from './output.ts'
import { SITE_KEY } from './site-flags.ts'
import { settingsOf, withStore } from './site-store.ts'

export const EXPORT_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'site export',
    about: 'Print sites as a file for apply: those named, or all but that of /demo.',
    positionals: [{ ...SITE_KEY, isOptional: true, repeats: true }],
    flags: {
      whole: {
        about: 'Include hashes of API keys and the times of changes, to move the sites to another store.',
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

async function runExport(input: Input): Promise<void> {
  const siteKeys = input.texts(SITE_KEY.name)
  if (input.has('from-service')) {
    if (siteKeys !== undefined) throw new UsageError('--from-service: expected no site keys beside it')
    const { sites, apiKeys } = await recordsOfService()
    return printDocument(input, exportFile(sites, apiKeys))
  }
  const [file] = await withStore(async store => {
    const sites =
      siteKeys === undefined
        ? (await store.listSites()).filter(isNotDemo)
        : await Promise.all([...new Set(siteKeys)].map(siteKey => findSite(store, siteKey)))
    return exportFile(sites, input.has('whole') ? await store.listApiKeys() : undefined)
  })
  printDocument(input, file)
}

const isNotDemo = ({ siteKey }: SiteRecord) => !DEMO_SITE_KEYS.has(siteKey)

const ANSWER_MS_MAX = 10_000

/**
 * Asks the running service for the sites (except those of /demo) and API keys that it remembers, even if its store has lost them.
 *
 * @throws CommandError if no service answers at the admin port
 */
export async function recordsOfService(): Promise<CachedRecords> {
  const { RECORDS_PATH } = await import('../admin/records-route.ts')
  const { adminHost, adminPort } = settingsOf()
  if (adminPort === undefined)
    throw new CommandError('POWGATE_ADMIN_PORT: expected the admin port of the running service')
  // The name `localhost` could lead to [::1], where another program may listen.
  const host = adminHost === '0.0.0.0' || adminHost === '::' ? '127.0.0.1' : adminHost
  const url = localUrl({ host, port: adminPort }) + RECORDS_PATH
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    if (!answer.ok) throw new Error(`it answered ${answer.status}`)
    const { sites, apiKeys } = (await answer.json()) as CachedRecords
    const isPresent = ({ deletedAt }: { readonly deletedAt?: number }) => deletedAt === undefined
    return { sites: sites.filter(isPresent).filter(isNotDemo), apiKeys: apiKeys.filter(isPresent) }
  } catch (error) {
    const { message, cause } = error as Error
    throw new CommandError(
      `cannot read the sites of the service at ${url}: ${(cause as Error)?.message ?? message}`,
    )
  }
}

async function runSchema(input: Input): Promise<void> {
  const { EXPORT_FILE_SCHEMA } = await import('../sites/schema.ts')
  printDocument(input, EXPORT_FILE_SCHEMA)
}

/** Prints a line for each field, so that version control shows what changed; with --json all is on one line. */
function printDocument(input: Input, document: unknown): void {
  printJson(document, input.has('json') ? undefined : 2)
}
