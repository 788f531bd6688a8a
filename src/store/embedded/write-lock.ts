/**
 * The lock of an LMDB file: a process holds the lock while it writes or opens the file.
 *
 * LMDB admits one writer at a time, but a process may open the file while another one writes. The opening process reads the
 * newest meta page. Then it sets the number of the last transaction, which all processes share, to the number read. LMDB
 * forgets what another process commits between the two steps, since the next writer starts from the state before that commit.
 * A redeemed token is then unredeemed again. After two commits in between, every later transaction of every process fails
 * ("mdb_page_touch no parent"). (mdb_env_open2 of lmdb 3.5.6; test/store/lmdb-file.test.ts shows both.)
 *
 * The lock is the write lock of a second LMDB file. Nothing is ever written to that file, so opening it loses nothing. The
 * kernel frees the lock when its holder dies. Holding the lock costs 0.5 us, beside 10 us for a transaction.
 */

import './lmdb-platform.ts'
import { mkdirSync } from 'node:fs'
import { open, type RootDatabase, type RootDatabaseOptionsWithPath, type TransactionFlags } from 'lmdb'

/** Each process that has a file open holds one slot: more slots than the most workers need, twice for a roll. */
const READERS_MAX = 1024

/** ABORTABLE | SYNCHRONOUS_COMMIT | NO_SYNC_FLUSH of lmdb, which only declares them. */
const UNFLUSHED = 0x10003 as TransactionFlags

type FileOptions = RootDatabaseOptionsWithPath & { readonly path: string }

/** A process may open a file several times, and close it as often: lmdb counts its users. */
function openFile(options: FileOptions): RootDatabase {
  mkdirSync(options.path, { recursive: true, mode: 0o700 })
  return open({ maxReaders: READERS_MAX, cache: false, ...options })
}

/** An LMDB file with its lock, whose own file lies beside it. */
export class LockedFile {
  readonly root: RootDatabase
  readonly #lock: RootDatabase
  #isHeld = false

  constructor(options: FileOptions) {
    this.#lock = openFile({ path: `${options.path}-lock`, noSync: true, overlappingSync: false })
    this.root = this.hold(() => openFile(options))
  }

  /**
   * Runs the action while no other process holds the lock, and returns its result. The action may hold the lock again. For
   * actions with write transactions of their own: opening a database that does not exist yet.
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

  /** The action's writes are one transaction; an exception undoes them. */
  write<T>(action: () => T): T {
    return this.hold(() => this.root.transactionSync(action))
  }

  /** The same without waiting for the disk, for writes that a crash of the machine may lose. */
  writeUnflushed<T>(action: () => T): T {
    return this.hold(() => this.root.transactionSync(action, UNFLUSHED))
  }

  async close(): Promise<void> {
    await this.root.close()
    await this.#lock.close()
  }
}
