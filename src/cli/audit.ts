/** `powgate audit`: who changed which site or API key, when, and how. */

import type { AuditEntry } from '../domain/audit.ts'
import { SITE_KEY_RULE } from '../sites/rules.ts'
import { whenMs } from '../sites/times.ts'
import type { Command, Input } from './command.ts'
import { dateText, printChanges, printJson, printLine } from './output.ts'
import { JSON_FLAG } from './site-flags.ts'
import { withStore } from './site-store.ts'

const ENTRIES = 50
const ENTRIES_MAX = 1_000_000

export const AUDIT_COMMAND: Command = {
  name: 'audit',
  about: 'Show the latest changes of sites and API keys, newest last: who, when, what, how.',
  positionals: [],
  flags: {
    site: {
      about: 'Only changes of this site and its API keys.',
      value: { placeholder: 'KEY', ...SITE_KEY_RULE },
    },
    limit: {
      about: `How many, at most. Default: ${ENTRIES}.`,
      value: {
        placeholder: 'N',
        expects: `an integer from 1 to ${ENTRIES_MAX}`,
        accepts: text => /^[1-9]\d{0,6}$/.test(text) && Number(text) <= ENTRIES_MAX,
      },
    },
    since: {
      about: 'Only changes from then on.',
      value: {
        placeholder: 'WHEN',
        expects:
          'a date (its start in UTC), a time such as 2026-11-21T09:30Z, or how long ago, such as 7d or 12h',
        accepts: text => whenMs(text, -1) !== undefined,
      },
    },
    json: JSON_FLAG,
  },
  example: '--site site_0123456789ABCDEFabcdef --since 7d',
  run: runAudit,
}

async function runAudit(input: Input): Promise<void> {
  const since = input.text('since')
  const query = {
    limit: Number(input.text('limit') ?? ENTRIES),
    siteKey: input.text('site'),
    sinceMs: since === undefined ? undefined : whenMs(since, -1),
  }
  const entries = await withStore(store => store.readAudit(query))
  if (input.has('json')) printJson(entries)
  else if (entries.length === 0) printLine('There are no such changes.')
  else for (const entry of entries) printEntry(entry)
}

function printEntry({ at, who, how, action, siteKey, keyId, name, changes }: AuditEntry): void {
  const what = [
    action.replace('-', ' '),
    keyId,
    name && `"${name}"`,
    keyId === undefined ? '' : 'of',
    siteKey,
  ]
  printLine(`${dateText(at)}  ${what.filter(Boolean).join(' ')}  by ${who} (${how})`)
  printChanges(changes, action.endsWith('-created'))
}
