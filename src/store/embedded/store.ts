import { systemErrorText } from '../../words/system-error.ts'
import type { Store, StoreListener, StoreStatus, StoreTrouble } from '../store.ts'
import { openState, type StateEnvironment } from './environment.ts'
import { EmbeddedRecords } from './records.ts'
import { type EmbeddedClocks, EmbeddedRequests, SYSTEM_CLOCKS } from './requests.ts'
import { refuseIfFull, scarceBytes } from './room.ts'

interface EmbeddedStoreOptions extends StoreListener {
  readonly dataDir: string
  /** Of the state's files. */
  readonly bytesMax: number
  readonly sweeps: boolean
  readonly clocks?: EmbeddedClocks
}

const SWEEP_COUNT = 500
/**
 * A sweep reads live entries too, so the pause is short only while many are dead: at 100,000 entries a second, the dead never
 * outnumber the living for long.
 */
const SWEEP_PAUSES_MS = [
  { deadShareMin: 0.5, pauseMs: 5 },
  { deadShareMin: 0.1, pauseMs: 20 },
  { deadShareMin: 0, pauseMs: 100 },
] as const
const SWEEP_IDLE_MS = 1000

export class EmbeddedStore implements Store {
  readonly description: string
  readonly requests: EmbeddedRequests
  readonly sites: EmbeddedRecords
  readonly #options: EmbeddedStoreOptions
  readonly #state: StateEnvironment
  #isUp = true
  #wasOver = false
  #timer: NodeJS.Timeout | undefined

  /** Throws StoreSetupError. */
  constructor(options: EmbeddedStoreOptions) {
    const { dataDir, clocks = SYSTEM_CLOCKS, onCall } = options
    this.#options = options
    this.description = `embedded store in ${dataDir}`
    this.sites = new EmbeddedRecords(dataDir)
    this.#state = openState(dataDir)
    this.requests = new EmbeddedRequests(this.#state, clocks, this.#onFault, onCall)
    this.#schedule(0)
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.requests.flush()
    await this.sites.close()
    await this.#state.file.close()
  }

  isReady(): boolean {
    return this.#isUp && !this.requests.isFull
  }

  trouble(): StoreTrouble | undefined {
    if (this.isReady()) return undefined
    return {
      cause: this.requests.lacksRoom ? 'disk' : 'other',
      line: `POWGATE_DATA_DIR: the ${this.description} cannot be written`,
      isLasting: false,
    }
  }

  async look(): Promise<StoreStatus> {
    return { clockAheadSeconds: 0, evictsBy: undefined, evictedKeys: 0 }
  }

  readonly #onFault = (error: unknown): void => {
    this.requests.lacksRoom = scarceBytes(this.#options.dataDir) !== undefined
    const cause = this.requests.lacksRoom ? 'the disk is full' : undefined
    if (this.#isUp) this.#options.onChange?.(false, cause ?? systemErrorText(error))
    this.#isUp = false
  }

  #schedule(afterMs: number): void {
    this.#timer = setTimeout(() => this.#maintain(), afterMs).unref()
  }

  #maintain(): void {
    let pauseMs = SWEEP_IDLE_MS
    try {
      refuseIfFull(this.#options.dataDir)
      this.requests.lacksRoom = false
      pauseMs = this.#maintainFiles()
    } catch (error) {
      this.#onFault(error)
    }
    this.#schedule(pauseMs)
  }

  /** @returns the next pause */
  #maintainFiles(): number {
    const pauseMs = this.#options.sweeps ? this.#sweep() : SWEEP_IDLE_MS
    this.#checkSize()
    if (!this.#isUp) {
      this.#probe()
      this.#isUp = true
      this.#options.onChange?.(true, 'the disk takes writes again')
    }
    return pauseMs
  }

  #sweep(): number {
    try {
      const deadShare = this.requests.sweep(SWEEP_COUNT)
      if (deadShare === undefined) return SWEEP_IDLE_MS
      return SWEEP_PAUSES_MS.find(({ deadShareMin }) => deadShare >= deadShareMin)!.pauseMs
    } catch {
      // MDB_BAD_TXN may fail a sweep and no other transaction, so the store is away only if a small write fails too.
      this.#probe()
      return SWEEP_IDLE_MS
    }
  }

  #probe(): void {
    this.#state.file.write(() => this.#state.probe.putSync('probe', '{}'))
  }

  #checkSize(): void {
    const { windows, marks, probe } = this.#state
    const used = [windows, marks, probe].reduce((bytes, database) => bytes + bytesOf(database.getStats()), 0)
    // Twice in a row: a failed reading looks like a good one.
    const isOver = used > this.#options.bytesMax
    const isFull = isOver && this.#wasOver
    this.#wasOver = isOver
    this.requests.meters.isHalfFull = used > this.#options.bytesMax / 2
    if (isFull !== this.requests.isFull) {
      this.requests.isFull = isFull
      this.#options.onChange?.(
        !isFull,
        isFull ? `the state holds ${used} bytes, its bound` : 'there is room again',
      )
    }
  }
}

function bytesOf(stats: {
  pageSize?: number
  treeBranchPageCount?: number
  treeLeafPageCount?: number
  overflowPages?: number
}): number {
  const { pageSize = 0, treeBranchPageCount = 0, treeLeafPageCount = 0, overflowPages = 0 } = stats
  return pageSize * (treeBranchPageCount + treeLeafPageCount + overflowPages)
}
