/** The file of LMDB: what damage is seen, and what processes that open or write it at the same time may do to it. */

import assert from 'node:assert/strict'
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { openSites, openState } from '../../src/store/embedded/environment.ts'
import { damageOf } from '../../src/store/embedded/lmdb-file.ts'
import { Random } from '../harness/random.ts'
import { tempDir } from './harness.ts'

const PAGE = 4096
const CHILD = new URL('./lmdb-child.ts', import.meta.url).pathname

/** Sites of all sizes, some of more than one page, written in every way that there is. */
async function writeSites(dataDir: string, random: Random, rounds: number, check = () => {}): Promise<void> {
  const { file, records } = openSites(dataDir)
  check()
  for (let round = 0; round < rounds; round++) {
    const write = () => {
      for (let count = random.below(30); count > 0; count--) {
        const key = `s/${random.below(400)}`
        if (random.chance(0.2)) records.removeSync(key)
        else records.putSync(key, 'x'.repeat(random.chance(0.1) ? random.below(20_000) : random.below(900)))
      }
    }
    if (random.chance(0.5)) file.write(write)
    else await file.root.transaction(write)
    if (random.chance(0.1)) file.write(() => {})
    check()
  }
  await file.close()
  check()
}

function writeState(dataDir: string, random: Random, rounds: number, check = () => {}): Promise<void> {
  const { file, windows, marks } = openState(dataDir)
  check()
  for (let round = 0; round < rounds; round++) {
    file.write(() => {
      for (let count = random.below(300); count > 0; count--) {
        const key = random.bytes(3)
        if (random.chance(0.4)) windows.removeSync(key)
        else windows.putSync(key, random.bytes(random.below(200)))
        marks.putSync(random.bytes(8), random.bytes(4))
      }
    })
    check()
  }
  return file.close()
}

test('an LMDB file is whole after every transaction', async t => {
  const dataDir = tempDir(t)
  const random = new Random(7)
  const sites = join(dataDir, 'sites', 'data.mdb')
  for (let times = 0; times < 3; times++)
    await writeSites(dataDir, random, 100, () => assert.equal(damageOf(sites), undefined))
  const state = join(dataDir, 'state', 'data.mdb')
  for (let times = 0; times < 3; times++)
    await writeState(dataDir, random, 60, () => assert.equal(damageOf(state, true), undefined))
})

test('an LMDB file is whole while another process writes it', async t => {
  const dataDir = tempDir(t)
  const child = fork(CHILD, ['write-until-killed', dataDir])
  await once(child, 'message')
  const state = join(dataDir, 'state', 'data.mdb')
  try {
    for (let looks = 0; looks < 500; looks++) assert.equal(damageOf(state, true), undefined)
  } finally {
    child.kill('SIGKILL') // a test that fails ends too
  }
  await once(child, 'exit')
  assert.equal(damageOf(state, true), undefined)
})

test('a file that was cut off or overwritten is not, wherever a page is in use', async t => {
  const dataDir = tempDir(t)
  const random = new Random(11)
  await writeSites(dataDir, random, 40)
  const path = join(dataDir, 'sites', 'data.mdb')
  const whole = readFileSync(path)
  const copy = join(dataDir, 'copy')
  for (const size of [0, 1, PAGE, PAGE + 100, 2 * PAGE, Math.floor(whole.length / 2)]) {
    copyFileSync(path, copy)
    truncateSync(copy, size)
    assert.equal(typeof damageOf(copy), 'string', `cut to ${size}`)
  }
  const [even, odd] = [152, PAGE + 152].map(at => whole.readBigUInt64LE(at)) as [bigint, bigint]
  const olderPasses = Buffer.from(whole)
  if (even < odd) olderPasses.writeBigUInt64LE(odd + 1n, 152)
  else olderPasses.writeBigUInt64LE(even + 1n, PAGE + 152)
  writeFileSync(copy, olderPasses)
  assert.equal(typeof damageOf(copy), 'string', 'an older transaction passes for the last one')
  let found = 0
  const pages = whole.length / PAGE
  for (let page = 0; page < pages; page++) {
    const bytes = Buffer.from(whole)
    random.bytes(PAGE).copy(bytes, page * PAGE)
    writeFileSync(copy, bytes)
    if (damageOf(copy) !== undefined) found++
  }
  // The others are free, or the later ones of a long value.
  assert.ok(found > pages / 8, `${found} of ${pages} pages`)
})

for (const where of ['', ', where LMDB cannot read the boot id'])
  test(`of the state no wrong byte in the first two pages goes unseen that could bring back what was before${where}`, async t => {
    const dataDir = tempDir(t)
    await writeState(dataDir, new Random(13), 20)
    const path = join(dataDir, 'state', 'data.mdb')
    const whole = readFileSync(path)
    if (where !== '') for (const page of [0, PAGE]) whole.writeBigUInt64LE(0n, page + 160)
    const copy = join(dataDir, 'copy')
    writeFileSync(copy, whole)
    assert.equal(damageOf(copy, true), undefined)
    const transactionAt = [0, PAGE].map(page => page + 152)
    const latest =
      whole.readBigUInt64LE(transactionAt[0]!) > whole.readBigUInt64LE(transactionAt[1]!) ? 0 : PAGE
    for (const [from, to] of [
      [18, 19], // flags
      [24, 30], // magic, version
      [52, 96], // free tree
      [100, 144], // main tree
      [147, 152], // last page, by so much that nothing is there
      [152, 168], // transaction, boot
    ] as const) {
      for (let at = from; at < to; at++) {
        for (const mask of [0x01, 0x02, 0x80, 0xff]) {
          if (at === 18 && mask !== 0xff) continue // flags that say nothing
          const bytes = Buffer.from(whole)
          bytes[latest + at]! ^= mask
          writeFileSync(copy, bytes)
          assert.equal(typeof damageOf(copy, true), 'string', `byte ${at} ^ ${mask}`)
        }
      }
    }
    const bytes = Buffer.from(whole)
    bytes.writeBigUInt64LE(3n, latest + 144)
    writeFileSync(copy, bytes)
    assert.equal(typeof damageOf(copy, true), 'string', 'a last page before those that are in use')
  })

/** With fewer it would show nothing. Each process goes on until it has done that, however busy the machine is. */
const OPENINGS = 100
const COMMITS = 500
const DEADLINE_MS = 240_000

test('no transaction is lost while another process opens the files', async t => {
  const dataDir = tempDir(t)
  mkdirSync(join(dataDir, 'state'))
  const child = async (what: 'write' | 'open', name: string) => {
    const count = String(what === 'write' ? COMMITS : OPENINGS)
    const args = ['--import', 'tsx', CHILD, what, dataDir, name, count]
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: DEADLINE_MS })
    assert.match(stdout, /^\d+\n$/)
    return Number(stdout)
  }
  const writers = [child('write', 'first'), child('write', 'second')]
  const [openings, ...commits] = await Promise.all([child('open', 'opener'), ...writers])
  t.diagnostic(`${commits.join(' and ')} transactions, ${openings} openings`)
  assert.ok(openings! >= OPENINGS && commits.every(count => count >= COMMITS))
})
