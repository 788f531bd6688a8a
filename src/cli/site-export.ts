/** `powgate site export` and `powgate site schema`. */

import { exportFile } from '../sites/export-file.ts'
import { findSite } from '../sites/sites.ts'
import { UsageError } from '../words/errors.ts'
import type { CommandEntry, Input } from './command.ts'
import { printJson } from './output.ts'
import { isNotDemo, recordsOfService } from './service-records.ts'
import { SITE_KEY } from './site-flags.ts'
import { withStore } from './site-store.ts'

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
    return printDocument(input, exportFile(sites, apiKeys)) // as with --whole
  }
  const file = await withStore(async store => {
    const sites =
      siteKeys === undefined
        ? (await store.listSites()).filter(isNotDemo)
        : await Promise.all([...new Set(siteKeys)].map(siteKey => findSite(store, siteKey)))
    return exportFile(sites, input.has('whole') ? await store.listApiKeys() : undefined)
  })
  printDocument(input, file)
}

async function runSchema(input: Input): Promise<void> {
  const { EXPORT_FILE_SCHEMA } = await import('../sites/schema.ts')
  printDocument(input, EXPORT_FILE_SCHEMA)
}

/** Prints a line for each field, so that version control shows what changed; with --json all is on one line. */
function printDocument(input: Input, document: unknown): void {
  printJson(document, input.has('json') ? undefined : 2)
}
