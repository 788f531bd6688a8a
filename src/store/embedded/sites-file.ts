/**
 * Sites, API keys and the audit log of the embedded store, in sites.jsonl. (The file of `site export` and `apply` is another: see
 * sites/export-file.ts.) Each change is appended as a line of JSON, and is on disk before it is answered. A line may have these parts:
 *
 *   {"changes": [[<revision>, {"site": ...} or {"apiKey": ...}], ...], all of one commit; each has the store's next revision
 *    "audit": [<entry>, ...],
 *    "auditFrom": <Unix ms>,            older entries were dropped
 *    "uses": {"<key id>": <Unix ms>}}   last uses, written without a wait for the disk
 *
 * The file is written anew once half of its entries are of no use any more.
 */

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { siteMeter } from '../../domain/address-tags.ts'
import {
  type AuditEntry,
  type AuditQuery,
  type Author,
  auditEntry,
  type RecordChange,
} from '../../domain/audit.ts'
import { dailyRate } from '../../domain/meters.ts'
import type { ApiKeyRecord, SiteRecord } from '../../domain/site.ts'
import { difficultyProblem, FIELDS, valueIn } from '../../domain/site-fields.ts'
import { isOfForm } from '../../domain/value-forms.ts'
import { OperatorError } from '../../words/errors.ts'
import { systemErrorText } from '../../words/system-error.ts'
import { type Change, jsonOf, Members, memberOf, type Written } from '../members.ts'
import type { LivingHosts, SiteStore } from '../store.ts'
import { giveToUser, hasServedFrom, SERVICE_URL } from './data-dir.ts'
import type { State } from './state.ts'

export const SITES_JSONL = 'sites.jsonl'
/** A file of fewer entries is not written anew for its length, since it is read in no time. */
const COMPACTED_ENTRIES_MIN = 1000
/** A link is not followed. Otherwise a service that was taken over could lay one, by which a command of root would write any file. */
const APPENDED = constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW
const synced = promisify(fsync)

interface Line {
  readonly changes?: readonly (readonly [number, Written])[]
  readonly audit?: readonly AuditEntry[]
  readonly auditFrom?: number
  readonly uses?: Readonly<Record<string, number>>
}
const PARTS = new Set(['changes', 'audit', 'auditFrom', 'uses'])

export class EmbeddedSites extends Members implements SiteStore {
  /** The saved state, for meters and for `forget`. A function, since a command reads it only if it must. */
  readonly #state: () => State
  /** True once `forget` was called: a command must then save the state, or the next start would bring the forgotten back. */
  hasForgotten = false
  readonly #isReadOnly: boolean
  readonly #path: string
  #fd: number
  #bytes = 0 // length of the file as this process left it
  /** Changes, entries of the audit log and uses in the file, of which a line may have thousands. */
  #entries = 0
  #revision = 0
  /** Records by member (members.ts), in the order of their last change. */
  readonly #records = new Map<string, { readonly revision: number; readonly json: string }>()
  #audit: AuditEntry[] = []
  /** True from a line with `auditFrom` until the file is written anew: it still has entries that were dropped. */
  #hasDropped = false
  readonly #uses = new Map<string, number>()
  /** The last write to the file: each waits for the one before. */
  #lastWrite: Promise<unknown> = Promise.resolve()
  /** Tells the log which line was dropped, most likely because a crash had interrupted its write. */
  readonly droppedLine: string | undefined

  /**
   * @param isReadOnly for `powgate check`: the file stays as it is, and changes are refused
   * @throws OperatorError also if a service ran here and its sites are missing: else the next start would take itself for the first
   */
  constructor(dataDir: string, state: () => State, isReadOnly = false) {
    super()
    this.#state = state
    this.#isReadOnly = isReadOnly
    this.#path = join(dataDir, SITES_JSONL)
    const hasServed = hasServedFrom(dataDir)
    try {
      const isNew = !existsSync(this.#path)
      if (isNew && hasServed) throw lostSites(this.#path)
      this.#fd = openSync(this.#path, isReadOnly ? constants.O_NOFOLLOW : constants.O_RDWR | APPENDED, 0o600)
      if (isNew) {
        giveToUser(this.#path)
        const directory = openSync(dataDir, 'r')
        fsyncSync(directory) // so that the new name in it outlives a power loss
        closeSync(directory)
      }
      this.droppedLine = this.#read()
      if (this.#revision === 0 && hasServed) throw lostSites(this.#path)
      if (isReadOnly) this.#bytes = fstatSync(this.#fd).size // `#read` has mended no last line
    } catch (error) {
      if (error instanceof OperatorError) throw error
      const { code, path = this.#path } = error as NodeJS.ErrnoException
      const why = code === 'ELOOP' ? 'it is a link, which is not followed' : systemErrorText(error)
      throw new OperatorError(`POWGATE_DATA_DIR: cannot use the sites in ${path}: ${why}`)
    }
  }

  /** A path to the file for as long as this process lives, also if it was removed: the operator is told it (server.ts). */
  get openFile(): string {
    return `/proc/${process.pid}/fd/${this.#fd}`
  }

  /** False if somebody else replaced or wrote the file, such as an editor, or `cp` of a backup. */
  get isInPlace(): boolean {
    const there = statSync(this.#path, { throwIfNoEntry: false })
    return there?.ino === fstatSync(this.#fd).ino && there.size === this.#bytes
  }

  commit(changes: readonly RecordChange[], author: Author, revision?: number | null): Promise<boolean> {
    return this.#afterLastWrite(async () => {
      if (revision != null && revision !== this.#revision) return false // the socket makes null of undefined
      const isExpected = changes.every(
        change => this.#records.get(memberOf(change))?.json === JSON.stringify(change.expected),
      )
      if (!isExpected) return false
      // The audit log stays in the order of time, also after the clock was set back.
      const at = Math.max(Date.now(), this.#audit.at(-1)?.at ?? 0)
      await this.#append({
        changes: changes.map(({ expected: _, ...written }, index) => [this.#revision + 1 + index, written]),
        audit: changes.map(change => ({ at, ...auditEntry(change, author) })),
      })
      return true
    })
  }

  async readAudit({ limit, siteKey, sinceMs = 0 }: AuditQuery): Promise<AuditEntry[]> {
    const fitting = this.#audit.filter(
      entry => entry.at >= sinceMs && (siteKey === undefined || entry.siteKey === siteKey),
    )
    return fitting.slice(Math.max(0, fitting.length - limit))
  }

  dropAudit(beforeMs: number): Promise<void> {
    const isThere = (this.#audit[0]?.at ?? beforeMs) < beforeMs
    return isThere ? this.#afterLastWrite(() => this.#append({ auditFrom: beforeMs })) : Promise.resolve()
  }

  noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    const later = [...uses].filter(([id, atMs]) => this.#isLaterUse(id, atMs))
    if (later.length === 0) return Promise.resolve()
    return this.#afterLastWrite(() => this.#append({ uses: Object.fromEntries(later) }, false))
  }

  async readUses(ids: readonly string[]): Promise<Map<string, number>> {
    return new Map(ids.flatMap(id => (this.#uses.has(id) ? [[id, this.#uses.get(id)!] as const] : [])))
  }

  async forget(addressKeys: readonly string[]): Promise<number> {
    this.hasForgotten = true
    const { windows, meters } = this.#state()
    const names = (await this.namesOf(addressKeys)).flat()
    return names.filter(name => windows.delete(name) || meters.delete(name)).length
  }

  /** No other host can use this store. */
  async livingHosts(): Promise<LivingHosts> {
    return { shards: 1, living: [] }
  }

  noteHost(): Promise<LivingHosts> {
    return this.livingHosts()
  }

  async readUsualRate(siteKey: string): Promise<number | undefined> {
    const meter = this.#state().meters.get(siteMeter(siteKey))
    return dailyRate(meter === undefined ? [] : [meter], Date.now())
  }

  async closeFile(): Promise<void> {
    await this.#lastWrite
    closeSync(this.#fd)
  }

  protected async readJson(members: readonly string[]): Promise<(string | undefined)[]> {
    return members.map(member => this.#records.get(member)?.json)
  }

  protected async revision(): Promise<number> {
    return this.#revision
  }

  protected async changesAfter(revision: number, countMax?: number): Promise<Change[]> {
    const later = [...this.#records].filter(([, record]) => record.revision > revision)
    return later.slice(0, countMax).map(([member, record]) => [member, record.revision])
  }

  #afterLastWrite<Result>(write: () => Promise<Result>): Promise<Result> {
    const done = this.#lastWrite.then(write)
    this.#lastWrite = done.catch(() => {})
    return done
  }

  /** Changes the records in memory once the line is in the file. @throws OperatorError */
  async #append(line: Line, waitsForDisk = true): Promise<void> {
    if (this.#isReadOnly)
      throw new OperatorError('powgate check has the data directory, so this was not done: try again')
    const notDone = (why: string) =>
      new OperatorError(`POWGATE_DATA_DIR: cannot write ${this.#path}, so this was not done: ${why}`)
    let isInPlace: boolean
    try {
      isInPlace = this.isInPlace
    } catch (error) {
      throw notDone(systemErrorText(error))
    }
    if (!isInPlace) throw notDone('it was replaced or written by somebody else: restart the service')
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    const before = this.#bytes
    try {
      writeFileSync(this.#fd, bytes)
      this.#bytes += bytes.length
      if (waitsForDisk) await synced(this.#fd)
    } catch (error) {
      try {
        ftruncateSync(this.#fd, before)
      } catch {
        // If a part of the line stays, `isInPlace` refuses all later changes, and the next start moves it aside.
      }
      this.#bytes = before
      throw notDone(systemErrorText(error))
    }
    this.#apply(line)
    const isLong = this.#entries > COMPACTED_ENTRIES_MIN && this.#entries > 2 * this.#living
    // What the audit log forgets must leave the file too, and with it older values of settings.
    if (isLong || this.#hasDropped) await this.#compact().catch(() => {}) // the line itself is written
  }

  get #living(): number {
    return this.#records.size + this.#audit.length + this.#uses.size
  }

  #isLaterUse(id: string, atMs: number): boolean {
    return atMs > (this.#uses.get(id) ?? 0)
  }

  #apply({ changes = [], audit = [], auditFrom, uses = {} }: Line): void {
    const used = Object.entries(uses)
    this.#entries += changes.length + audit.length + used.length
    for (const [revision, written] of changes) {
      const member = memberOf(written)
      this.#records.delete(member) // so that it becomes the last
      this.#records.set(member, { revision, json: jsonOf(written) })
      this.#revision = Math.max(this.#revision, revision)
    }
    for (const entry of audit) this.#audit.push(entry) // a spread of 120,000 entries overflows the stack
    if (auditFrom !== undefined) this.#audit = this.#audit.filter(({ at }) => at >= auditFrom)
    this.#hasDropped ||= auditFrom !== undefined
    // Another write may have come since noteUses looked.
    for (const [id, atMs] of used) if (this.#isLaterUse(id, atMs)) this.#uses.set(id, atMs)
  }

  #read(): string | undefined {
    const text = readFileSync(this.#fd)
    for (let start = 0, number = 1; start < text.length; number++) {
      const end = text.indexOf('\n', start)
      const lineText = text.toString('utf8', start, end === -1 ? text.length : end)
      try {
        this.#apply(checked(JSON.parse(lineText)))
      } catch (error) {
        // A crash leaves only the last line unfinished. If there is no other, dropping it would look like a first start without sites.
        if (end === -1 && start > 0 && error instanceof SyntaxError) {
          const aside = `${this.#path}.dropped`
          if (!this.#isReadOnly) this.#moveRest(text, start, aside)
          return `line ${number}, the last, is not whole, and ${this.#isReadOnly ? 'the next start moves it' : 'was moved'} to ${aside}: after a crash nobody was told that it was done; after an edit or a copy of the file, what is missing is there`
        }
        throw new Error(
          `line ${number}: ${(error as Error).message}. Put the file back from a backup, or mend that line (one JSON object a line)`,
        )
      }
      // Many editors leave the last line without its end.
      if (end === -1 && !this.#isReadOnly) writeFileSync(this.#fd, '\n')
      start = (end === -1 ? text.length : end) + 1
      this.#bytes = start
    }
    return undefined
  }

  #moveRest(text: Buffer, start: number, aside: string): void {
    const asideFd = openSync(aside, constants.O_WRONLY | APPENDED, 0o600)
    try {
      writeFileSync(asideFd, Buffer.concat([text.subarray(start), Buffer.from('\n')]), { flush: true })
    } finally {
      closeSync(asideFd)
    }
    giveToUser(aside)
    ftruncateSync(this.#fd, start)
  }

  /** Waits for the disk without holding up the store's other calls, which workers wait for. */
  async #compact(): Promise<void> {
    const lines = [
      ...Array.from(this.#records, ([member, { revision, json }]) => {
        const name = member.startsWith('s/') ? 'site' : 'apiKey'
        return `{"changes":[[${revision},{"${name}":${json}}]]}`
      }),
      ...this.#audit.map(entry => JSON.stringify({ audit: [entry] })),
      JSON.stringify({ uses: Object.fromEntries(this.#uses) }),
    ]
    const bytes = Buffer.from(lines.map(line => `${line}\n`).join(''))
    const path = `${this.#path}.new`
    let fd: number | undefined
    try {
      rmSync(path, { force: true })
      fd = openSync(path, 'ax+', 0o600)
      giveToUser(path, fstatSync(this.#fd))
      writeFileSync(fd, bytes)
      await synced(fd)
      if (!this.isInPlace) throw new Error('the file was replaced meanwhile')
      renameSync(path, this.#path)
    } catch {
      // Most likely the disk is full: the unfinished new file gives its space back, and the next change tries again.
      if (fd !== undefined) closeSync(fd)
      rmSync(path, { force: true })
      return
    }
    closeSync(this.#fd)
    this.#fd = fd
    this.#bytes = bytes.length
    this.#entries = this.#living
    this.#hasDropped = false
    const directory = openSync(join(this.#path, '..'), 'r')
    await synced(directory).finally(() => closeSync(directory))
  }
}

function lostSites(path: string): OperatorError {
  return new OperatorError(
    `POWGATE_DATA_DIR: ${resolve(path)} is missing or has no sites, though a service ran here: put it back from a backup; or, to start without sites, remove the file ${SERVICE_URL} beside it, and create them anew from a \`powgate site export\` by \`powgate apply\``,
  )
}

const NEEDED_FIELDS = ['name', 'active', 'origins', 'difficulty.base', 'difficulty.min', 'difficulty.max']

/** A person may have edited the file: refuses mistakes that would make workers fail, or do something else. */
function checkSite(site: SiteRecord): void {
  for (const field of FIELDS) {
    const [group, part] = field.path
    const value = valueIn(site, field)
    if (part !== undefined && typeof (site[group as keyof SiteRecord] ?? {}) !== 'object')
      throw new Error(`${group} of a site: expected an object`)
    if (value === undefined ? NEEDED_FIELDS.includes(field.name) : !isOfForm(field.form, value))
      throw new Error(`${field.name} of a site: expected ${field.form.schema.description}`)
  }
  const problem = difficultyProblem(site.difficulty)
  if (problem !== undefined) throw new Error(`difficulty of a site: ${problem}`)
  const { createdAt, deletedAt = 0, raise = { bits: 0, until: 0 } } = site
  const isRaise = Number.isInteger(raise?.bits) && raise.bits >= 0 && Number.isFinite(raise.until)
  if (!isRaise || !Number.isFinite(createdAt) || !Number.isFinite(deletedAt))
    throw new Error('createdAt, deletedAt or raise of a site: expected numbers')
}

function checkApiKey({ siteKey, secretSha256, createdAt, revokedAt, expiresAt = null }: ApiKeyRecord): void {
  const areTimes = [revokedAt, expiresAt].every(at => at === null || Number.isSafeInteger(at))
  const areTexts = typeof siteKey === 'string' && typeof secretSha256 === 'string'
  if (!areTexts || !areTimes || !Number.isFinite(createdAt))
    throw new Error(
      'siteKey, secretSha256, createdAt, revokedAt or expiresAt of an API key is missing, or not of its kind',
    )
}

function checked(line: unknown): Line {
  if (typeof line !== 'object' || line === null || Array.isArray(line))
    throw new Error('it is no JSON object')
  const unknown = Object.keys(line).find(part => !PARTS.has(part))
  if (unknown !== undefined) throw new Error(`${JSON.stringify(unknown)} is no part that this version knows`)
  for (const [revision, written] of (line as Line).changes ?? []) {
    const { site, apiKey } = written as { site?: SiteRecord; apiKey?: ApiKeyRecord }
    const isNamed = typeof site?.siteKey === 'string' || typeof apiKey?.id === 'string'
    if (!Number.isSafeInteger(revision) || !isNamed) throw new Error('a change is no site and no API key')
    if (site !== undefined) checkSite(site)
    else checkApiKey(apiKey!)
  }
  const { audit = [], auditFrom = 0, uses = {} } = line as Line
  if (!Array.isArray(audit) || !audit.every(entry => Number.isSafeInteger(entry?.at)))
    throw new Error('audit is no list of entries with their time (at)')
  if (![auditFrom, ...Object.values(uses)].every(Number.isSafeInteger))
    throw new Error('auditFrom or one of uses is no time')
  return line as Line
}
