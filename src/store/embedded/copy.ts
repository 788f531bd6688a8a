/** The embedded store, whose clock is monotonic, as an end of `powgate store copy`. */

import { resolve } from 'node:path'
import { isSiteKey } from '../../domain/site.ts'
import { type CopyEnd, inChunks, type StateEntry, shifted } from '../copy.ts'
import {
  discardStaleState,
  forgetBoot,
  isStateOfThisBoot,
  openState,
  prepareDataDir,
  type StateEnvironment,
  setEpoch,
} from './environment.ts'
import { checkSites } from './inspection.ts'
import { keyOf as meterKey, networkOf, RECORD_OFFSET } from './meters.ts'
import { hasOwner } from './owner.ts'
import { EmbeddedRecords } from './records.ts'
import { CLAIM_OFFSET, SYSTEM_CLOCKS } from './requests.ts'

const CHUNK = 1000
/** Of a transaction, of a page each: see room.ts. */
const WRITTEN_MAX = 250

export class EmbeddedEnd implements CopyEnd {
  readonly place: string
  readonly shards = 1
  readonly sites: EmbeddedRecords
  readonly #dataDir: string
  #opened: StateEnvironment | undefined

  /**
   * @param isTarget whether to create the directory
   * @throws StoreSetupError
   */
  constructor(dataDir: string, isTarget: boolean) {
    prepareDataDir(dataDir, isTarget)
    checkSites(dataDir)
    this.#dataDir = dataDir
    this.place = resolve(dataDir)
    this.sites = new EmbeddedRecords(dataDir)
  }

  async usedBy(): Promise<string | undefined> {
    return hasOwner(this.#dataDir) ? 'a service' : undefined
  }

  async epochs(): Promise<readonly number[] | undefined> {
    return isStateOfThisBoot(this.#dataDir) ? [this.#state().epoch] : undefined
  }

  async *entries(): AsyncIterable<readonly StateEntry[]> {
    const { windows, marks } = this.#state()
    for (const chunk of inChunks(windows.getRange({}), CHUNK))
      yield chunk.map(({ key, value }) => entryOfWindow(key, value))
    for (const chunk of inChunks(marks.getRange({}), CHUNK))
      yield chunk.map(({ key, value }) => entryOfMark(key, value))
  }

  async write(entries: readonly StateEntry[]): Promise<void> {
    for (const some of inChunks(entries, WRITTEN_MAX)) this.#write(some)
  }

  #write(entries: readonly StateEntry[]): void {
    const { file, windows, marks } = this.#state()
    file.write(() => {
      for (const { name, value, restMs } of entries) {
        const [kind, rest] = [name[0]!, name.slice(2)]
        const [wall, monotonic] = [SYSTEM_CLOCKS.wallMs(), SYSTEM_CLOCKS.monotonicMs()]
        if (kind === 'r' || kind === 'n') {
          const key = Buffer.concat([Buffer.from(kind), Buffer.from(rest, 'hex')])
          marks.putSync(key, Buffer.concat([seconds(wall + restMs), seconds(monotonic + restMs), value]))
        } else {
          const isShared = rest.startsWith('born:') || isSiteKey(rest)
          const key =
            kind === 'e' ? meterKey(isShared ? name : rest) : Buffer.from((kind === 'l' ? 'a' : kind) + rest)
          const record = shifted(name, value, monotonic - wall)
          windows.putSync(key, Buffer.concat([seconds(monotonic + restMs), record]))
        }
      }
    })
  }

  async clear(): Promise<void> {
    const { file, windows, marks } = this.#state()
    file.write(() => {
      windows.clearSync()
      marks.clearSync()
    })
  }

  async adopt([epoch]: readonly number[]): Promise<void> {
    setEpoch(this.#state(), epoch!)
  }

  async retire(): Promise<void> {
    forgetBoot(this.#dataDir)
  }

  async close(): Promise<void> {
    await this.sites.close()
    await this.#opened?.file.close()
  }

  #state(): StateEnvironment {
    if (this.#opened === undefined) discardStaleState(this.#dataDir)
    this.#opened ??= openState(this.#dataDir)
    return this.#opened
  }
}

function entryOfWindow(key: Buffer, value: Buffer): StateEntry {
  const [wall, monotonic] = [SYSTEM_CLOCKS.wallMs(), SYSTEM_CLOCKS.monotonicMs()]
  const text = key.toString('latin1')
  const network = networkOf(text)
  const kind = text[0] === 'a' ? 'l' : text[0]
  const ownName = kind === 'e' ? text : `${kind}:${text.slice(1)}`
  const name = network === undefined ? ownName : `e:${network}`
  return {
    shard: 0,
    name,
    value: shifted(name, value.subarray(RECORD_OFFSET), wall - monotonic),
    restMs: value.readUInt32BE(0) * 1000 - monotonic,
  }
}

function entryOfMark(key: Buffer, value: Buffer): StateEntry {
  const wallMs = value.readUInt32BE(0) * 1000 - SYSTEM_CLOCKS.wallMs()
  const monotonicMs = value.readUInt32BE(4) * 1000 - SYSTEM_CLOCKS.monotonicMs()
  return {
    shard: 0,
    name: `${String.fromCharCode(key[0]!)}:${key.toString('hex', 1)}`,
    value: Buffer.from(value.subarray(CLAIM_OFFSET)),
    restMs: Math.max(wallMs, monotonicMs),
  }
}

function seconds(ms: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(Math.ceil(ms / 1000))
  return bytes
}
