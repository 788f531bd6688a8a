/** `powgate audit`: prints changes of sites and API keys from the store's audit log. */

import type { AuditEntry } from '../domain/audit.ts'
import { integer } from '../domain/value-forms.ts'
import { SITE_KEY_RULE, whenMs } from '../sites/rules.ts'
import type { CommandEntry, Input } from './command.ts'
import { dateText, printChanges, printJson, printLine } from './output.ts'
import { withStore } from './site-store.ts'

const DEFAULT_LIMIT = 50

export const AUDIT_COMMAND: CommandEntry = {
  name: 'audit',
  about: 'Show the latest changes of sites and API keys, newest last: who, when, what.',
  flags: {
    site: {
      about: 'Only changes of this site and its API keys.',
      value: { placeholder: 'KEY', ...SITE_KEY_RULE },
    },
    limit: {
      about: `Most changes to show. Default: ${DEFAULT_LIMIT}.`,
      value: integer('N', 1, 1_000_000).text,
    },
    since: {
      about: 'Only changes since then.',
      value: {
        placeholder: 'WHEN',
        expects:
          'a date (its start in UTC), a time such as 2026-11-21T09:30Z, or how long ago, such as 7d or 12h',
        accepts: text => whenMs(text, 'ago') !== undefined,
      },
    },
  },
  example: '--site site_0123456789ABCDEFabcdef --since 7d',
  run: runAudit,
}

async function runAudit(input: Input): Promise<void> {
  const since = input.text('since')
  const query = {
    limit: Number(input.text('limit') ?? DEFAULT_LIMIT),
    siteKey: input.text('site'),
    sinceMs: since === undefined ? undefined : whenMs(since, 'ago'),
  }
  const entries = await withStore(store => store.readAudit(query))
  if (input.has('json')) printJson(entries)
  else if (entries.length === 0) printLine('There are no such changes.')
  else {
    for (const entry of entries) printEntry(entry)
    if (input.text('limit') === undefined && entries.length === query.limit)
      printLine('', `These are the latest ${query.limit}; there may be more: --limit N`)
  }
}

function printEntry({ at, who, how, action, siteKey, keyId, name, changes }: AuditEntry): void {
  const what = [action.replace('-', ' '), keyId, name && `"${name}"`, keyId && 'of', siteKey]
  printLine(`${dateText(at)}  ${what.filter(Boolean).join(' ')}  by ${who} (${how})`)
  printChanges(changes, action.endsWith('-created'))
}
