/**
 * Finds damage in an LMDB file by reading every page in use, before a start opens it and after a worker crashed. LMDB itself
 * trusts the file: damage ends the process, empties the store, or makes used tokens unused again. It keeps no checksums, so a
 * wrong byte inside a value is not found.
 *
 *   page      | number 8 | transaction 8 | - 2 | flags 2 | lower 2, upper 2 (or pages 4) | offsets 2 each ... | nodes |
 *             lower, upper and offsets count from the end of this header of 24 bytes
 *   meta      a page with fields at MAGIC_AT and so on; the free tree's first 4 bytes are the page size
 *   tree      | - 4 | flags 2 | depth 2 | Counts 8 each | root 8 |
 *   node      | child or length 4 (of a child 6) | flags 2 | key length 2 | key | value |
 *   long      | page 8 | transaction 8 | pages 8 |  for a value with pages of its own
 *
 * So lmdb 3.5 (liblmdb/mdb.c) writes on a 64-bit little-endian machine. The first two pages are metas of the last two
 * transactions, and in the middle of the first page is the meta of the last one known to be on disk. A transaction overwrites no
 * page of the one before, so a file in use can be checked between commits.
 */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { machineBootId } from './environment.ts'

const HEADER_BYTES = 24
const NODE_BYTES = 8
const LONG_BYTES = 24
const TREE_BYTES = 48
const META_BYTES = 168
const [MAGIC_AT, VERSION_AT, FREE_TREE_AT, MAIN_TREE_AT, LAST_PAGE_AT, TRANSACTION_AT, BOOT_AT] = [
  24, 28, 48, 96, 144, 152, 160,
]
const MAGIC = 0xbeefc0de
const VERSION = 2
const [BRANCH, LEAF, OVERFLOW, META] = [0x01, 0x02, 0x04, 0x08]
const [LONG, TREE] = [0x01, 0x02]
/** The free tree's keys are numbers; some transactions set one more flag. */
const [FREE_FLAGS, FREE_FLAGS_MORE] = [0x08, 0x1000]
/** Last pages that may be allocated and not yet written. */
const UNWRITTEN_MAX = 65_536
const EMPTY_ROOT = 0xffffffffffffffffn
/** LMDB found none, as in containers of LXC and systemd-nspawn. */
const UNKNOWN_BOOT = '00000000'
/**
 * With pages over 4 KiB only one meta, which is enough: a page that transaction N uses is freed by N+1 and overwritten by N+3
 * at the earliest, when both metas have changed.
 */
const START_BYTES = 8192
const TRIES = 3

class Damage extends Error {}

/**
 * @param mustBeOfThisBoot for the state, which each boot discards
 * @returns what is wrong; undefined also if it changed so fast that it must be in use
 * @throws if it cannot be read
 */
export function damageOf(path: string, mustBeOfThisBoot = false): string | undefined {
  const file = openSync(path, 'r')
  try {
    for (let tried = 0; tried < TRIES; tried++) {
      const before = read(file, 0, START_BYTES)
      const damage = attempt(() => check(file, mustBeOfThisBoot))
      // A transaction during the check has changed a meta.
      if (damage === undefined || before.equals(read(file, 0, START_BYTES))) return damage
    }
    return undefined
  } finally {
    closeSync(file)
  }
}

function attempt(action: () => void): string | undefined {
  try {
    action()
    return undefined
  } catch (error) {
    if (error instanceof Damage) return error.message
    throw error
  }
}

function read(file: number, position: number, bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(bytes)
  return buffer.subarray(0, readSync(file, buffer, 0, bytes, position))
}

function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Damage(otherwise)
}

const WRONG_METAS = 'its first pages are damaged'

interface Meta {
  readonly page: Buffer
  readonly pageBytes: number
  readonly transaction: bigint
  /** The first group of its boot id. */
  readonly boot: string
}

function check(file: number, mustBeOfThisBoot: boolean): void {
  const { size } = fstatSync(file)
  const metas = metasOf(file, size)
  const [latest] = metas as [Meta, ...Meta[]]
  const isOfThisBoot = latest.boot === machineBootId().split('-')[0]
  must(isOfThisBoot || latest.boot === UNKNOWN_BOOT || !mustBeOfThisBoot, WRONG_METAS)
  // After a crash of the machine LMDB goes back to the last state on disk, so one good meta is enough.
  const usable = isOfThisBoot || mustBeOfThisBoot ? [latest] : metas
  const damages = usable.map(meta =>
    attempt(() => {
      const newest = new Pages(file, size, meta).check()
      // Every transaction writes pages.
      must(newest === meta.transaction, WRONG_METAS)
    }),
  )
  must(damages.includes(undefined), damages[0]!)
}

/** Of the last two transactions, latest first, then of the last one known to be on disk. */
function metasOf(file: number, size: number): Meta[] {
  must(size > 0, 'it is empty (0 bytes)')
  const first = metaAt(file, 0)
  if (first === undefined) throw new Damage('its first page is not that of an LMDB file')
  const { pageBytes } = first
  must(size >= 2 * pageBytes, `it ends after ${size} bytes, within its first two pages`)
  const second = metaAt(file, pageBytes)
  if (second?.pageBytes !== pageBytes) throw new Damage('its second page is not that of an LMDB file')
  // Transactions write the two in turn. A wrong number would make the older pass for the latest.
  const [even, odd] = [first.transaction, second.transaction]
  const isNew = even === 0n && odd === 0n
  const areInTurn = even % 2n === 0n && (even - odd === 1n || odd - even === 1n)
  must(isNew || areInTurn, WRONG_METAS)
  for (const { page } of [first, second]) {
    const isFreeTree = (page.readUInt16LE(FREE_TREE_AT + 4) & ~FREE_FLAGS_MORE) === FREE_FLAGS
    must(isFreeTree && page.readUInt16LE(MAIN_TREE_AT + 4) === 0, WRONG_METAS)
  }
  const flushed = metaAt(file, pageBytes / 2)
  return [...(even >= odd ? [first, second] : [second, first]), ...(flushed === undefined ? [] : [flushed])]
}

function metaAt(file: number, position: number): Meta | undefined {
  const page = read(file, position, META_BYTES)
  if (page.length < META_BYTES) return undefined
  const isMeta =
    (page.readUInt16LE(18) & META) !== 0 &&
    page.readUInt32LE(MAGIC_AT) === MAGIC &&
    page.readUInt16LE(VERSION_AT) === VERSION
  if (!isMeta) return undefined
  return {
    page,
    pageBytes: page.readUInt32LE(FREE_TREE_AT),
    transaction: page.readBigUInt64LE(TRANSACTION_AT),
    boot: page.readBigUInt64LE(BOOT_AT).toString(16).padStart(8, '0'),
  }
}

type Counts = [branchPages: number, leafPages: number, longPages: number, entries: number]

class Pages {
  readonly #file: number
  readonly #size: number
  readonly #meta: Meta
  readonly #seen: Uint8Array
  #newestTransaction = 0n

  constructor(file: number, size: number, meta: Meta) {
    this.#file = file
    this.#size = size
    this.#meta = meta
    this.#seen = new Uint8Array(Math.ceil(size / meta.pageBytes))
  }

  /** @returns the newest page's transaction */
  check(): bigint {
    const { page } = this.#meta
    this.#tree(page, FREE_TREE_AT)
    this.#tree(page, MAIN_TREE_AT)
    // New pages follow the last: a wrong number would overwrite used ones, or leave the memory map.
    const last = page.readBigUInt64LE(LAST_PAGE_AT)
    must(last >= this.#seen.lastIndexOf(1) && last <= this.#seen.length + UNWRITTEN_MAX, WRONG_METAS)
    return this.#newestTransaction
  }

  #tree(bytes: Buffer, at: number): void {
    const root = bytes.readBigUInt64LE(at + 40)
    const found: Counts = [0, 0, 0, 0]
    if (root !== EMPTY_ROOT) this.#page(Number(root), bytes.readUInt16LE(at + 6), found)
    const isAsSaid = found.every(
      (count, index) => bytes.readBigUInt64LE(at + 8 + 8 * index) === BigInt(count),
    )
    must(isAsSaid, 'a tree in it has not as many pages or entries as it says')
  }

  #page(number: number, depth: number, found: Counts): void {
    const isBranch = depth !== 1
    const page = this.#read(number, 1, isBranch ? BRANCH : LEAF)
    const lower = HEADER_BYTES + page.readUInt16LE(20)
    const upper = HEADER_BYTES + page.readUInt16LE(22)
    this.#must(lower <= upper && upper <= page.length, number)
    found[isBranch ? 0 : 1]++
    for (let offset = HEADER_BYTES; offset < lower; offset += 2) {
      const at = HEADER_BYTES + page.readUInt16LE(offset)
      this.#must(at >= upper && at + NODE_BYTES <= page.length, number)
      if (isBranch) this.#page(page.readUIntLE(at, 6), depth - 1, found)
      else {
        found[3]++
        found[2] += this.#value(number, page, at)
      }
    }
  }

  /** @returns its pages, if it is a long value */
  #value(number: number, page: Buffer, at: number): number {
    const flags = page.readUInt16LE(at + 4)
    const start = at + NODE_BYTES + page.readUInt16LE(at + 6)
    const isLong = (flags & LONG) !== 0
    const length = isLong ? LONG_BYTES : page.readUInt32LE(at)
    this.#must(start + length <= page.length, number)
    if (isLong) {
      const pages = Number(page.readBigUInt64LE(start + 16))
      this.#read(Number(page.readBigUInt64LE(start)), pages, OVERFLOW)
      return pages
    }
    if ((flags & TREE) !== 0) {
      this.#must(length === TREE_BYTES, number)
      this.#tree(page, start)
    }
    return 0
  }

  /** @param count 1, or a long value's pages, of which only the first has a header */
  #read(number: number, count: number, kind: number): Buffer {
    const { pageBytes, transaction } = this.#meta
    if (count < 1 || (number + count) * pageBytes > this.#size)
      throw new Damage(`it ends after ${this.#size} bytes, but page ${number} is part of it`)
    for (let page = number; page < number + count; page++) {
      this.#must(page > 1 && this.#seen[page] === 0, page)
      this.#seen[page] = 1
    }
    const page = read(this.#file, number * pageBytes, pageBytes)
    const written = page.readBigUInt64LE(8)
    const isRight = page.readBigUInt64LE(0) === BigInt(number) && written <= transaction
    const isCounted = kind !== OVERFLOW || page.readUInt32LE(20) === count
    this.#must(isRight && isCounted && page.readUInt16LE(18) === kind, number)
    if (written > this.#newestTransaction) this.#newestTransaction = written
    return page
  }

  #must(holds: boolean, number: number): void {
    if (!holds) throw new Damage(`page ${number} of ${this.#seen.length} is damaged`)
  }
}
