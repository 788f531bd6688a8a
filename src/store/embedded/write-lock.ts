/**
 * A lock that a process holds while it writes or opens an LMDB file.
 *
 * Opening reads the newest meta page, then sets the shared number of the last transaction to that (mdb_env_open2 of lmdb 3.5.6).
 * A commit in between is forgotten: a redeemed token is unredeemed. After two, every transaction of every process fails
 * ("mdb_page_touch no parent"). test/store/lmdb-file.test.ts shows both.
 *
 * The lock is that of a second LMDB file, which is never written, so opening it loses nothing. The kernel frees it when its
 * holder dies. It costs 0.5 us, a transaction 10 us.
 */

import './lmdb-platform.ts'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { open, type RootDatabase, type RootDatabaseOptionsWithPath, type TransactionFlags } from 'lmdb'
import { refuseIfFull } from './room.ts'

/** A process takes a slot for each open file: twice the most workers, for a roll. */
const READERS_MAX = 1024

/** ABORTABLE | SYNCHRONOUS_COMMIT | NO_SYNC_FLUSH, which lmdb does not export. */
const UNFLUSHED = 0x10003 as TransactionFlags

type FileOptions = RootDatabaseOptionsWithPath & { readonly path: string }

/** A process may open it several times: lmdb counts. */
function openFile(options: FileOptions): RootDatabase {
  if (!existsSync(`${options.path}/data.mdb`)) refuseIfFull(dirname(options.path))
  mkdirSync(options.path, { recursive: true, mode: 0o700 })
  return open({ maxReaders: READERS_MAX, cache: false, ...options })
}

export class LockedFile {
  readonly root: RootDatabase
  readonly #lock: RootDatabase
  readonly #dataDir: string
  readonly #roomBytes: number
  #isHeld = false

  /** @param roomBytes that a transaction must find on the disk */
  constructor(options: FileOptions, roomBytes: number) {
    this.#dataDir = dirname(options.path)
    this.#roomBytes = roomBytes
    this.#lock = openFile({ path: `${options.path}-lock`, noSync: true, overlappingSync: false })
    this.root = this.hold(() => openFile(options))
  }

  /** For actions with write transactions of their own, such as opening a new database. Can be nested. */
  hold<T>(action: () => T): T {
    if (this.#isHeld) return action()
    return this.#lock.transactionSync(() => {
      this.#isHeld = true
      try {
        return action()
      } finally {
        this.#isHeld = false
      }
    })
  }

  /**
   * One transaction; an exception undoes it.
   *
   * @param pages that it writes beyond the usual few
   * @throws StoreSetupError on a full disk
   */
  write<T>(action: () => T, pages = 0, flags?: TransactionFlags): T {
    return this.hold(() => {
      refuseIfFull(this.#dataDir, this.#roomBytes, pages)
      return this.root.transactionSync(action, flags)
    })
  }

  /** A crash of the machine may lose it. */
  writeUnflushed<T>(action: () => T, pages: number): T {
    return this.write(action, pages, UNFLUSHED)
  }

  async close(): Promise<void> {
    await this.root.close()
    await this.#lock.close()
  }
}
