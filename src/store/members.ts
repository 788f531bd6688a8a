/** How both stores name and write their configuration records: `s/<site key>` and `k/<API key id>`, as JSON. */

import type { RecordChange } from '../domain/audit.ts'

export function memberOf(change: RecordChange): string {
  return 'site' in change ? `s/${change.site.siteKey}` : `k/${change.apiKey.id}`
}

/** JSON of the record as it must be stored now, and as it will be. A record that was read and not changed keeps its JSON. */
export function jsonOf(change: RecordChange): { expected: string | undefined; written: string } {
  const { expected } = change
  return {
    expected: expected === undefined ? undefined : JSON.stringify(expected),
    written: JSON.stringify('site' in change ? change.site : change.apiKey),
  }
}

export function splitMembers(members: readonly string[]): { siteKeys: string[]; apiKeyIds: string[] } {
  const named = (kind: 's/' | 'k/') =>
    members.filter(member => member.startsWith(kind)).map(member => member.slice(kind.length))
  return { siteKeys: named('s/'), apiKeyIds: named('k/') }
}
