/** Plans what `powgate apply` writes: the sites and API keys of an export file that the store lacks, or has with other settings. */

import type { RecordChange } from '../domain/audit.ts'
import { type ApiKeyRecord, isExpired, updatedAtOf } from '../domain/site.ts'
import type { SiteStore } from '../store/store.ts'
import { PROGRAM } from '../version.ts'
import {
  diffWithFile,
  type FileContent,
  type FileDiff,
  type KeyEntry,
  type MissingSites,
} from './export-file.ts'
import { deletion, newKey } from './sites.ts'

export interface ApplyPlan extends FileDiff {
  /** API keys of the file's `apiKeys` that the store lacks or has older; the file has only hashes of their secrets. */
  readonly keysAdded: readonly ApiKeyRecord[]
  /** New API keys with their secrets, for names in the `keys` of the file's sites. */
  readonly keysMade: readonly ReturnType<typeof newKey>[]
  /** The store's, read first: the commit fails if it has changed. Else two runs at once would both make what the file only names. */
  readonly revision: number
  /** What to write, unless there are `problems`: each record with the stored one that it replaces, as `expected`. */
  readonly records: readonly RecordChange[]
}

/** @param isDry the plan is only printed: keys of new sites are not drawn (export-file.ts) */
export async function planApply(
  store: SiteStore,
  { sites, apiKeys, deletedSites }: FileContent,
  missing: MissingSites,
  isDry: boolean,
): Promise<ApplyPlan> {
  const now = Date.now()
  const { revision } = await store.changesSince(undefined)
  const storedSites = await store.listSites()
  const diff = diffWithFile(sites, storedSites, missing, isDry, now, deletedSites)
  const storedKeys = await store.listApiKeys()
  const storedById = new Map(storedKeys.map(key => [key.id, key]))
  const siteKeysAfter = new Set([...sites, ...storedSites].flatMap(({ siteKey }) => siteKey ?? []))
  for (const { action, after } of diff.changes) if (action === 'delete') siteKeysAfter.delete(after.siteKey)
  const problemsOf = (key: KeyEntry) => keyProblems(store, key, storedById.get(key.id), siteKeysAfter)
  const problems = [
    ...diff.problems,
    ...(sites.length === 0 ? emptyFileProblems(diff, missing) : []),
    ...(await deletedSiteProblems(store, diff)),
    ...(await Promise.all(apiKeys.map(problemsOf))).flat(),
  ]
  const keysAdded = apiKeys
    .filter(key => replaces(key, storedById.get(key.id)))
    .map(key => ({ ...key, createdAt: key.createdAt || now, revokedAt: key.revokedAt ?? null }))
  const allKeys = new Map([...storedKeys, ...keysAdded].map(key => [key.id, key]))
  const validKeys = [...allKeys.values()].filter(key => key.revokedAt === null && !isExpired(key, now))
  const keysMade = diff.neededKeys
    .filter(({ siteKey, name }) => !validKeys.some(key => key.siteKey === siteKey && key.name === name))
    .map(({ siteKey, name }) => newKey(siteKey, { name }, now))
  const records = [
    ...diff.changes.flatMap(({ action, before, after }) =>
      action === 'delete' ? deletion(after, storedKeys, now) : [{ site: after, expected: before }],
    ),
    ...keysMade.map(({ record }) => ({ apiKey: record, expected: undefined })),
    ...keysAdded.map(apiKey => ({ apiKey, expected: storedById.get(apiKey.id) })),
  ]
  return { ...diff, problems, keysAdded, keysMade, revision, records }
}

/**
 * A key of the file is written if the store lacks it, or has an older copy (even of another site or secret) that it would not revive. One
 * without a time replaces none.
 */
function replaces(key: KeyEntry, stored: ApiKeyRecord | undefined): boolean {
  if (stored === undefined) return true
  // The store that the file is from may have missed the revocation, and changed the key later.
  const wouldRevive = stored.revokedAt !== null && (key.revokedAt ?? null) === null
  return timeOf(key) > updatedAtOf(stored) && !wouldRevive
}

const timeOf = (key: KeyEntry) => updatedAtOf({ createdAt: 0, ...key })

/** Names the fields in which the stored key, which stays, differs from what the file gives. Of an older copy only a revocation counts. */
function differing(key: KeyEntry, stored: ApiKeyRecord): string[] {
  const isRevoked = stored.revokedAt !== null
  const isOlderCopy = timeOf(key) > 0 && timeOf(key) < updatedAtOf(stored)
  const differs = (field: 'name' | 'expiresAt' | 'revokedAt') =>
    key[field] !== undefined && key[field] !== (stored[field] ?? null)
  if (isRevoked) return !isOlderCopy && differs('revokedAt') ? ['revokedAt'] : [] // nothing else matters of it
  const fields = isOlderCopy ? (['revokedAt'] as const) : (['name', 'expiresAt', 'revokedAt'] as const)
  return fields.filter(differs)
}

function emptyFileProblems({ changes }: FileDiff, missing: MissingSites): string[] {
  const changed = changes.filter(({ action }) => action === missing) // none if they stay, even if `deletedSites` deletes some
  if (changed.length === 0) return []
  return [
    `sites: the file has none, so every site would be ${missing}d (${changed.length}). If you mean that: ${PROGRAM} site ${missing}, one by one`,
  ]
}

/** The store lists no deleted site, but its record stays and can be read. */
async function deletedSiteProblems(store: SiteStore, { changes }: FileDiff): Promise<string[]> {
  const created = changes.filter(({ action, isNewSiteKey }) => action === 'create' && !isNewSiteKey)
  const deleted = await Promise.all(created.map(({ after }) => store.readSite(after.siteKey)))
  return deleted.flatMap(site =>
    site === undefined
      ? []
      : [
          `sites: ${site.siteKey} was deleted, and its key is not made again: take it and its apiKeys out of the file`,
        ],
  )
}

/** Says why the store cannot have this key as the file says. One that it has already as the file says is no problem. */
async function keyProblems(
  store: SiteStore,
  key: KeyEntry,
  listed: ApiKeyRecord | undefined,
  siteKeysAfter: ReadonlySet<string>,
): Promise<string[]> {
  const { id, siteKey, secretSha256 } = key
  if (!siteKeysAfter.has(siteKey))
    return [`apiKeys: expected the site of ${id} in the file, got none with the key ${siteKey}`]
  const stored = listed ?? (await store.readApiKey(id)) // a deleted one is not listed
  if (stored?.deletedAt !== undefined)
    return [`apiKeys: ${id} was deleted with its site, and is not made again`]
  if (replaces(key, stored)) return []
  if (stored?.siteKey === siteKey && stored.secretSha256 === secretSha256) {
    const fields = differing(key, stored)
    if (fields.length === 0) return []
    const command = `${PROGRAM} key ${fields.includes('revokedAt') ? 'revoke' : 'update'} ${id}`
    const orCommand = stored.revokedAt === null ? ` or ${command}` : '' // a revoked key stays as it is
    return [
      `apiKeys: ${id} has another ${fields.join(', ')} in the store, and a file changes no key: change the file${orCommand}`,
    ]
  }
  return [
    `apiKeys: ${id} is in the store with another site or secretSha256, and stays so: a new key has an id of its own`,
  ]
}
