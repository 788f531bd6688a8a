/** How both stores name their configuration records: `s/<site key>` and `k/<API key id>`. */

export function splitMembers(members: readonly string[]): { siteKeys: string[]; apiKeyIds: string[] } {
  const named = (kind: 's/' | 'k/') =>
    members.filter(member => member.startsWith(kind)).map(member => member.slice(kind.length))
  return { siteKeys: named('s/'), apiKeyIds: named('k/') }
}
