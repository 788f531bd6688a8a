/** `powgate site export` and `powgate site schema`: sites as a file, and what such a file may hold. */

import { DEMO_SITE_KEY } from '../demo/site.ts'
import { sitesFile } from '../sites/file.ts'
import { findSite } from '../sites/sites.ts'
import type { Command, Input } from './command.ts'
import { printJson } from './output.ts'
import { JSON_FLAG, SITE_KEY } from './site-flags.ts'
import { withStore } from './site-store.ts'

export const SITES_FILE_COMMANDS: readonly Command[] = [
  {
    name: 'site export',
    about:
      'Print sites as a file for apply, without API keys: all, that of a first start too, but not that of /demo; or those named.',
    positionals: [{ ...SITE_KEY, isOptional: true, repeats: true }],
    flags: { json: JSON_FLAG },
    example: '> sites.json',
    run: runExport,
  },
  {
    name: 'site schema',
    about: 'Print the JSON Schema of such a file, for editors and checks.',
    positionals: [],
    flags: { json: JSON_FLAG },
    example: '> sites.schema.json',
    run: runSchema,
  },
]

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
