/**
 * The lock of an LMDB file: whoever writes the file, or opens it, holds the lock.
 *
 * LMDB lets one writer at a time into a file, but it does not keep writers from those who open it: a process that opens
 * a file reads the newest meta page and then sets the number of the last transaction, which all processes share, to what it has
 * read. What another process commits between the two is forgotten, since the next writer starts from the state before it: a
 * redeemed token is not redeemed any more. If two commits fall in between, every later transaction of every process fails
 * ("mdb_page_touch no parent"). (mdb_env_open2 of lmdb 3.5.6; test/store/embedded-openers.test.ts shows both.)
 *
 * The lock is the write lock of one more LMDB file, to which nothing is ever written, so that opening this one loses
 * nothing. The kernel frees it when its holder dies. Holding it costs 0.5 us, beside 10 us for a transaction.
 */

import { open, type RootDatabase, type RootDatabaseOptionsWithPath, type TransactionFlags } from 'lmdb'

/** Each process that has a file open holds one slot: more than there can be workers, twice for a roll. */
const READERS_MAX = 1024

/** ABORTABLE | SYNCHRONOUS_COMMIT | NO_SYNC_FLUSH of lmdb, which only declares them. */
const UNFLUSHED = 0x10003 as TransactionFlags

/** An LMDB file that this process has open. */
export interface OpenFile {
  readonly root: RootDatabase
  close(): Promise<void>
}

const opened = new Map<string, { readonly root: RootDatabase; users: number }>()

/**
 * Opens a file once for all who want it in this process: if it were opened twice and closed once, the process would lose
 * its locks on it, and others would take it for gone.
 */
export function openFile(options: RootDatabaseOptionsWithPath & { readonly path: string }): OpenFile {
  const { path } = options
  const entry = opened.get(path) ?? {
    root: open({ maxReaders: READERS_MAX, cache: false, ...options }),
    users: 0,
  }
  entry.users++
  opened.set(path, entry)
  let isOpen = true
  return {
    root: entry.root,
    close: async () => {
      if (!isOpen) return
      isOpen = false
      if (--entry.users > 0) return
      opened.delete(path)
      await entry.root.close()
    },
  }
}

export class WriteLock {
  readonly #file: OpenFile
  #isHeld = false

  /** @param file that it is the lock of; the lock's own lies beside it */
  constructor(file: string) {
    this.#file = openFile({ path: `${file}-lock`, noSync: true, overlappingSync: false })
  }

  /** What the action returns. No other process holds the lock meanwhile; within the action it may be held again. */
  hold<T>(action: () => T): T {
    if (this.#isHeld) return action()
    return this.#file.root.transactionSync(() => {
      this.#isHeld = true
      try {
        return action()
      } finally {
        this.#isHeld = false
      }
    })
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}

/** An LMDB file with its lock. */
export class LockedFile {
  readonly root: RootDatabase
  readonly #file: OpenFile
  readonly #lock: WriteLock

  constructor(options: RootDatabaseOptionsWithPath & { readonly path: string }) {
    this.#lock = new WriteLock(options.path)
    this.#file = this.#lock.hold(() => openFile(options))
    this.root = this.#file.root
  }

  /** For what may write by transactions of its own: databases that are opened and are not there yet. */
  hold<T>(action: () => T): T {
    return this.#lock.hold(action)
  }

  /** The action's writes are one transaction; what it throws undoes them. */
  write<T>(action: () => T): T {
    return this.#lock.hold(() => this.root.transactionSync(action))
  }

  /** The same for what may be lost with the machine: it waits for no disk. */
  writeUnflushed<T>(action: () => T): T {
    return this.#lock.hold(() => this.root.transactionSync(action, UNFLUSHED))
  }

  async close(): Promise<void> {
    await this.#file.close()
    await this.#lock.close()
  }
}
