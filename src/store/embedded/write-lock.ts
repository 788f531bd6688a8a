/**
 * The lock of an LMDB file, held while a process writes or opens the file.
 *
 * LMDB admits one writer at a time, but lets a process open the file meanwhile. The opening process reads the newest meta page,
 * then sets the shared number of the last transaction to what it read. What was committed in between is forgotten, because the
 * next writer starts from the state before: a redeemed token is unredeemed. After two commits in between, every later
 * transaction of every process fails ("mdb_page_touch no parent"). (mdb_env_open2 of lmdb 3.5.6; test/store/lmdb-file.test.ts
 * shows both.)
 *
 * The lock is the write lock of a second LMDB file, which is never written, so opening it loses nothing. The kernel frees it
 * when its holder dies. It costs 0.5 us, beside 10 us for a transaction.
 */

import './lmdb-platform.ts'
import { mkdirSync } from 'node:fs'
import { open, type RootDatabase, type RootDatabaseOptionsWithPath, type TransactionFlags } from 'lmdb'

/** A process holds a slot for each open file: more than the most workers need, twice for a roll. */
const READERS_MAX = 1024

/** ABORTABLE | SYNCHRONOUS_COMMIT | NO_SYNC_FLUSH; lmdb only declares them. */
const UNFLUSHED = 0x10003 as TransactionFlags

type FileOptions = RootDatabaseOptionsWithPath & { readonly path: string }

/** A process may open and close it several times: lmdb counts. */
function openFile(options: FileOptions): RootDatabase {
  mkdirSync(options.path, { recursive: true, mode: 0o700 })
  return open({ maxReaders: READERS_MAX, cache: false, ...options })
}

export class LockedFile {
  readonly root: RootDatabase
  readonly #lock: RootDatabase
  #isHeld = false

  constructor(options: FileOptions) {
    this.#lock = openFile({ path: `${options.path}-lock`, noSync: true, overlappingSync: false })
    this.root = this.hold(() => openFile(options))
  }

  /**
   * Runs the action under the lock, which may be held already. For actions with their own write transactions: opening a
   * database that does not exist yet.
   */
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

  /** One transaction; an exception undoes it. */
  write<T>(action: () => T): T {
    return this.hold(() => this.root.transactionSync(action))
  }

  /** A crash of the machine may lose these writes. */
  writeUnflushed<T>(action: () => T): T {
    return this.hold(() => this.root.transactionSync(action, UNFLUSHED))
  }

  async close(): Promise<void> {
    await this.root.close()
    await this.#lock.close()
  }
}
