/**
 * Writes are tried only where the disk has room. When lmdb 3.5.6 cannot write its pages, it prints up to 125 bytes into 100
 * (mdb_page_flush), and the process dies of its damaged heap, at once or after some more.
 */

import { statfsSync } from 'node:fs'
import { StoreSetupError } from '../store.ts'

const PAGE_BYTES = 4096
/**
 * What must be free for a transaction of the state: a look under LMDB's lock precedes each, so this need hold no more than one,
 * of 64 requests with up to four pages each. A new lock file of LMDB, on a full disk, would end the process too.
 */
export const STATE_ROOM_BYTES = 2 ** 20
/** The sites' may use what the state leaves: where powgate itself filled the disk, API keys can be revoked. */
export const SITES_ROOM_BYTES = 2 ** 18

/** The free bytes, if too few; undefined also if the file system does not tell. */
export function scarceBytes(dataDir: string, neededBytes = STATE_ROOM_BYTES): number | undefined {
  try {
    const { blocks, bavail, bsize } = statfsSync(dataDir)
    const bytes = bavail * bsize
    return blocks === 0 || bytes >= neededBytes ? undefined : bytes
  } catch {
    return undefined
  }
}

/**
 * @param pages to be written beyond the usual few
 * @throws StoreSetupError
 */
export function refuseIfFull(dataDir: string, roomBytes = STATE_ROOM_BYTES, pages = 0): void {
  const neededBytes = roomBytes + pages * PAGE_BYTES
  const bytes = scarceBytes(dataDir, neededBytes)
  if (bytes === undefined) return
  throw new StoreSetupError(
    `POWGATE_DATA_DIR: the disk of ${dataDir} is full (${bytes} bytes are free, ${neededBytes} are needed), so this was not done: make room, then try again`,
  )
}
