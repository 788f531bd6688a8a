/**
 * Whether an LMDB file is whole. LMDB reads its file through a memory map and trusts the content. A truncated or damaged file
 * ends the process, or looks empty without an error. So every reachable page is checked before a file is opened, and after a
 * process ended that way. Values have no checksums: a wrong byte inside a value is not found here.
 *
 *   page      | number 8 | transaction 8 | - 2 | flags 2 | lower 2, upper 2 (or pages 4) | offsets 2 each ... | nodes |
 *             lower, upper and the offsets are counted from the end of this header of 24 bytes
 *   meta      at: magic 24, version 28, page size 48, free tree 48, main tree 96, last page 144, transaction 152
 *   tree      | - 4 | flags 2 | depth 2 | pages 24 | entries 8 | root 8 |
 *   node      | child or length 4 (of a child 6) | flags 2 | key length 2 | key | value |
 *
 * This is the layout of lmdb 3.5 (liblmdb/mdb.c) on a little-endian machine of 64 bits. Pages of the last transaction are not
 * overwritten before the next transaction has committed. So a file in use can be checked, as long as no transaction commits
 * meanwhile.
 */

import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'

const HEADER_BYTES = 24
const NODE_BYTES = 8
const MAGIC = 0xbeefc0de
const VERSION = 2
const [BRANCH, LEAF, OVERFLOW, META] = [0x01, 0x02, 0x04, 0x08]
/** Flags of nodes. */
const [BIG, TREE] = [0x01, 0x02]
const TREE_BYTES = 48
const [FREE_TREE_AT, MAIN_TREE_AT, TRANSACTION_AT, BOOT_AT] = [48, 96, 152, 160]
const META_BYTES = 168
const START_BYTES = 8192
const LAST_PAGE_AT = 144
/** Flags of the free tree: its keys are numbers; some transactions of lmdb set one more flag. The main tree has none. */
const [FREE_FLAGS, FREE_FLAGS_MORE] = [0x08, 0x1000]
/** The last pages are allocated, and need not have been written; at most this many were not. */
const UNWRITTEN_MAX = 65_536
const EMPTY_ROOT = 0xffffffffffffffffn
const PAGE_BYTES_MIN = 512
const PAGE_BYTES_MAX = 65_536
/** A deeper tree would not fit the largest memory map. */
const DEPTH_MAX = 32
const TRIES = 3

class Damage extends Error {}

/**
 * @param path of the file
 * @param mustBeOfThisBoot whether the file cannot have been written before the machine was started
 * @returns what is wrong with the file; undefined if the file is whole, or changed so fast that it must be in use
 * @throws the system's error if the file cannot be read
 */
export function damageOf(path: string, mustBeOfThisBoot = false): string | undefined {
  const file = openSync(path, 'r')
  try {
    if (!fstatSync(file).isFile()) return 'it is no file'
    for (let tried = 0; tried < TRIES; tried++) {
      const before = startOf(file)
      try {
        walk(file, mustBeOfThisBoot)
        return undefined
      } catch (error) {
        if (!(error instanceof Damage)) throw error
        // Each transaction writes a meta page. A process that commits often changes them between two reads of `walk`.
        if (before.equals(startOf(file))) return error.message
      }
    }
    return undefined
  } finally {
    closeSync(file)
  }
}

interface Meta {
  readonly page: Buffer
  readonly pageBytes: number
  readonly transaction: bigint
  readonly isOfThisBoot: boolean
}

function walk(file: number, mustBeOfThisBoot: boolean): void {
  const { size } = fstatSync(file)
  const { candidates, pageBytes } = metas(file, size)
  const [latest] = candidates
  if (mustBeOfThisBoot && !latest!.isOfThisBoot) throw new Damage('its first pages are damaged')
  if (latest!.isOfThisBoot) {
    const { newest } = new Pages(file, size, pageBytes).check(latest!)
    // Every transaction writes pages, so the newest page has the number of the last one.
    if (mustBeOfThisBoot && newest !== latest!.transaction) throw new Damage('its first pages are damaged')
    return
  }
  // After a crash of the machine LMDB goes back to the last state that was on disk; one whole state is enough.
  const damages = candidates.map(meta => {
    try {
      new Pages(file, size, pageBytes).check(meta)
      return undefined
    } catch (error) {
      return error
    }
  })
  if (damages.every(damage => damage !== undefined)) throw damages[0]
}

/** The two meta pages that a file starts with, one for each of the last two transactions, the latest first. */
function metas(file: number, size: number): { candidates: Meta[]; pageBytes: number } {
  if (size === 0) throw new Damage('it is empty (0 bytes)')
  const first = metaAt(file, 0)
  if (first === undefined) throw new Damage('its first page is not that of an LMDB file')
  const { pageBytes } = first
  if (size < 2 * pageBytes) throw new Damage(`it ends after ${size} bytes, within its first two pages`)
  const second = metaAt(file, pageBytes)
  if (second === undefined || second.pageBytes !== pageBytes)
    throw new Damage('its second page is not that of an LMDB file')
  // Transactions write the two pages in turn. With a wrong number, the older page would pass for the latest.
  const [even, odd] = [first.transaction, second.transaction]
  const isNew = even === 0n && odd === 0n
  if (!isNew && (even % 2n !== 0n || odd % 2n !== 1n || (even - odd !== 1n && odd - even !== 1n)))
    throw new Damage('its first pages are damaged')
  for (const { page } of [first, second]) {
    const flags = page.readUInt16LE(FREE_TREE_AT + 4) & ~FREE_FLAGS_MORE
    if (flags !== FREE_FLAGS || page.readUInt16LE(MAIN_TREE_AT + 4) !== 0)
      throw new Damage('its first pages are damaged')
  }
  // Here lmdb records which transaction has reached the disk.
  const flushed = metaAt(file, pageBytes / 2)
  const latest = first.transaction >= second.transaction ? [first, second] : [second, first]
  return { candidates: flushed === undefined ? latest : [...latest, flushed], pageBytes }
}

function metaAt(file: number, position: number): Meta | undefined {
  const page = Buffer.alloc(META_BYTES)
  if (readSync(file, page, 0, META_BYTES, position) < META_BYTES) return undefined
  const pageBytes = page.readUInt32LE(FREE_TREE_AT)
  const isMeta = (page.readUInt16LE(18) & META) !== 0 && page.readUInt32LE(24) === MAGIC
  const isPageSize =
    pageBytes >= PAGE_BYTES_MIN && pageBytes <= PAGE_BYTES_MAX && (pageBytes & (pageBytes - 1)) === 0
  if (!isMeta || page.readUInt16LE(28) !== VERSION || !isPageSize) return undefined
  const transaction = page.readBigUInt64LE(TRANSACTION_AT)
  return { page, pageBytes, transaction, isOfThisBoot: page.readBigUInt64LE(BOOT_AT) === bootNumber() }
}

/** The first bytes, with at least one of the two meta pages. */
function startOf(file: number): Buffer {
  const start = Buffer.alloc(START_BYTES)
  return start.subarray(0, readSync(file, start, 0, START_BYTES, 0))
}

/** The boot as lmdb records it: the first group of the boot id. */
function bootNumber(): bigint {
  try {
    const [group] = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').split('-')
    return BigInt(`0x${group}`)
  } catch {
    return -1n
  }
}

/** How many pages and entries a tree has. */
interface Found {
  branches: number
  leaves: number
  /** Pages of long values. */
  long: number
  entries: number
}

class Pages {
  readonly #file: number
  readonly #pageBytes: number
  readonly #count: number
  readonly #size: number
  readonly #seen: Uint8Array
  #transaction = 0n
  /** The transaction that wrote the newest of the pages. */
  #newest = 0n
  #highest = 1

  constructor(file: number, size: number, pageBytes: number) {
    this.#file = file
    this.#size = size
    this.#pageBytes = pageBytes
    this.#count = Math.ceil(size / pageBytes)
    this.#seen = new Uint8Array(this.#count)
  }

  /** @returns the transaction that wrote the newest of the pages */
  check({ page, transaction }: Meta): { newest: bigint } {
    this.#transaction = transaction
    this.#tree(page, FREE_TREE_AT)
    this.#tree(page, MAIN_TREE_AT)
    // New pages follow the last page. With a wrong number they would overwrite used pages, or lie far beyond the memory map.
    const last = page.readBigUInt64LE(LAST_PAGE_AT)
    if (last < BigInt(this.#highest) || last > BigInt(this.#count + UNWRITTEN_MAX))
      throw new Damage('its first pages are damaged')
    return { newest: this.#newest }
  }

  #tree(bytes: Buffer, at: number): void {
    const root = bytes.readBigUInt64LE(at + 40)
    const depth = bytes.readUInt16LE(at + 6)
    const found = { branches: 0, leaves: 0, long: 0, entries: 0 }
    if (root !== EMPTY_ROOT) {
      if (depth < 1 || depth > DEPTH_MAX) throw new Damage(`a tree in it is ${depth} pages deep`)
      this.#page(Number(root), depth, found)
    }
    const { branches, leaves, long, entries } = found
    const isAsSaid = [branches, leaves, long, entries].every(
      (count, index) => bytes.readBigUInt64LE(at + 8 + 8 * index) === BigInt(count),
    )
    if (!isAsSaid) throw new Damage('a tree in it has not as many pages or entries as it says')
  }

  #page(number: number, depth: number, found: Found): void {
    const page = this.#read(number, 1)
    const flags = page.readUInt16LE(18)
    if ((flags & (BRANCH | LEAF)) !== (depth > 1 ? BRANCH : LEAF)) throw this.#wrong(number)
    const lower = HEADER_BYTES + page.readUInt16LE(20)
    const upper = HEADER_BYTES + page.readUInt16LE(22)
    if (lower > upper || upper > page.length) throw this.#wrong(number)
    if (depth > 1) found.branches++
    else {
      found.leaves++
      found.entries += (lower - HEADER_BYTES) / 2
    }
    for (let offset = HEADER_BYTES; offset < lower; offset += 2) {
      const at = HEADER_BYTES + page.readUInt16LE(offset)
      if (at < upper || at + NODE_BYTES > page.length) throw this.#wrong(number)
      if (depth > 1) this.#page(page.readUInt32LE(at) + page.readUInt16LE(at + 4) * 2 ** 32, depth - 1, found)
      else this.#value(number, page, at, found)
    }
  }

  #value(number: number, page: Buffer, at: number, found: Found): void {
    const flags = page.readUInt16LE(at + 4)
    const start = at + NODE_BYTES + page.readUInt16LE(at + 6)
    const isBig = (flags & BIG) !== 0
    const length = isBig ? HEADER_BYTES : page.readUInt32LE(at)
    if (start + length > page.length) throw this.#wrong(number)
    if (isBig) {
      const count = Number(page.readBigUInt64LE(start + 16))
      this.#read(Number(page.readBigUInt64LE(start)), count)
      found.long += count
    } else if ((flags & TREE) !== 0) {
      if (length !== TREE_BYTES) throw this.#wrong(number)
      this.#tree(page, start)
    }
  }

  /** @param count 1, or the pages of a long value, of which only the first has a header */
  #read(number: number, count: number): Buffer {
    const bytes = this.#pageBytes
    if (count < 1 || (number + count) * bytes > this.#size) {
      throw new Damage(`it ends after ${this.#size} bytes, but page ${number} is part of it`)
    }
    for (let page = number; page < number + count; page++) {
      if (page < 2 || this.#seen[page] === 1) throw this.#wrong(page)
      this.#seen[page] = 1
    }
    this.#highest = Math.max(this.#highest, number + count - 1)
    const page = Buffer.allocUnsafe(bytes)
    readSync(this.#file, page, 0, bytes, number * bytes)
    const isRight = page.readBigUInt64LE(0) === BigInt(number)
    const isLong = (page.readUInt16LE(18) & OVERFLOW) !== 0
    if (!isRight || (isLong && page.readUInt32LE(20) !== count) || isLong !== page.readUInt16LE(18) > LEAF) {
      throw this.#wrong(number)
    }
    const written = page.readBigUInt64LE(8)
    if (written > this.#transaction) throw this.#wrong(number)
    if (written > this.#newest) this.#newest = written
    return page
  }

  #wrong(number: number): Damage {
    return new Damage(`page ${number} of ${this.#count} is damaged`)
  }
}
