/** The primary process supervises the store process: forks that fail, a process that dies or hangs. Also a worker silent at the start. */

import assert from 'node:assert/strict'
import { ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import cluster from 'node:cluster'
import { once } from 'node:events'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/log/logger.ts'
import { Totals } from '../../src/metrics/totals.ts'
import { Primary } from '../../src/process/primary.ts'
import { StoreProcess } from '../../src/process/store-process.ts'
import { writeServiceUrl } from '../../src/sites/service-files.ts'
import { createSite } from '../../src/sites/sites.ts'
import { socketPath } from '../../src/store/embedded/data-dir.ts'
import type { StoreMessage } from '../../src/store/embedded/process.ts'
import { openEmbedded } from '../harness/embedded.ts'
import { eventually, within } from '../harness/eventually.ts'
import { storePid } from '../harness/processes.ts'
import { temporaryDir } from '../harness/temporary.ts'

/** @param hungSeconds a store process that does not answer for so long is killed */
function newStore(dataDir = temporaryDir('store'), hungSeconds?: number): StoreProcess {
  const config = loadConfig({ POWGATE_DATA_DIR: dataDir })
  return new StoreProcess(config, createLogger('silent', {}, []), new Totals(), hungSeconds)
}

test('a store process that cannot be forked, such as while Node.js is upgraded, is a start that failed, not one that hangs', async t => {
  const path = process.execPath
  t.after(() => (process.execPath = path))
  process.execPath = '/nowhere/node'
  await assert.rejects(newStore().start(), { message: /ENOENT/ })
})

test('a store process that died, and whose fork throws for want of memory, is started a moment later', async t => {
  const store = newStore()
  await store.start()
  const spawn = t.mock.method(ChildProcess.prototype as unknown as { spawn(): number }, 'spawn', () => {
    throw new Error('spawn ENOMEM')
  })
  process.kill(storePid(process.pid)!, 'SIGKILL')
  await eventually(60_000, 'a fork threw', () => spawn.mock.callCount() > 0)
  spawn.mock.restore()
  await eventually(60_000, 'it runs again', () => storePid(process.pid) !== undefined)
  await store.end()
})

test('a store process that is started anew while the file of sites is away makes no empty one, and serves once it is back', async t => {
  const dataDir = temporaryDir('store')
  const store = newStore(dataDir)
  await store.start()
  t.after(() => store.end())
  const client = await openEmbedded(dataDir)
  t.after(() => client.close())
  await createSite(client.sites, { name: 'a' })
  writeServiceUrl(loadConfig({ POWGATE_DATA_DIR: dataDir })) // as a service that has served: only a first start makes the file
  const file = join(dataDir, 'sites.jsonl')
  renameSync(file, `${file}.away`)
  const forks = t.mock.method(ChildProcess.prototype as unknown as { spawn(): number }, 'spawn').mock
  process.kill(storePid(process.pid)!, 'SIGKILL')
  await eventually(60_000, 'the first fork has refused, and a second is tried', () => forks.callCount() > 1)
  assert.equal(existsSync(file), false)
  renameSync(`${file}.away`, file)
  await eventually(60_000, 'it serves', () => client.sites.listSites().catch(() => undefined))
})

test('a store process whose primary ended before it was loaded ends', async () => {
  const dataDir = temporaryDir('store')
  const child = fork('dist/store/embedded/process.js', [dataDir, '1000000']) // the bound of its state, in bytes
  child.disconnect()
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('a store process that may open no more files closes connections, says so, and lives on', async t => {
  const dataDir = temporaryDir('store')
  const args = ['--nofile=60', process.execPath, 'dist/store/embedded/process.js', dataDir, '1000000']
  const child = spawn('prlimit', args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  t.after(() => child.kill('SIGKILL'))
  const heard = async (wanted: StoreMessage['type']) => {
    while ((await once(child, 'message'))[0].type !== wanted);
  }
  await heard('serves')
  for (let count = 0; count < 60; count++) connect(socketPath(dataDir)).on('error', () => {})
  await heard('tells')
  await heard('lives')
})

test('a store process that hangs is killed and started anew, one that only has nothing to do is not', async t => {
  const dataDir = temporaryDir('store')
  const hungSeconds = 6 // a busy machine may stop a process for some seconds
  const store = newStore(dataDir, hungSeconds)
  await store.start()
  t.after(() => store.end())
  const first = storePid(process.pid)!
  await sleep((hungSeconds + 2) * 1000)
  assert.equal(storePid(process.pid), first, 'it has nothing to do, but answers')
  // Whoever reads a FIFO that nobody writes waits for ever, so the next store process hangs while it reads its files.
  execFileSync('sh', ['-c', 'rm $0 && mkfifo $0', join(dataDir, 'sites.jsonl')])
  process.kill(first, 'SIGSTOP')
  await eventually(60_000, 'it is killed', () => storePid(process.pid) !== first)
  const second = await eventually(60_000, 'another takes its place', () => storePid(process.pid))
  await sleep(2 * hungSeconds * 1000)
  assert.equal(storePid(process.pid), second, 'while it reads its files it has longer')
})

/** Worker 0 listens at once and is silent for 10 s; worker 1 listens after 7 s. A start waits for both, and while one is silent for 5 s. */
const WORKER = `const speak = () => setInterval(() => process.send({ type: 'ready', isReady: true }), 200)
  process.on('message', ({ index }) => {
    setTimeout(() => process.send({ type: 'listening' }), 7000 * index)
    setTimeout(speak, 10_000 * (1 - index))
  })
  process.send({ type: 'hello' })`

test('a start ends although a worker was silent as the last one began to listen, once it speaks again', async t => {
  const exec = join(temporaryDir('primary'), 'worker.mjs')
  writeFileSync(exec, WORKER)
  cluster.setupPrimary({ exec, execArgv: [] })
  const primary = new Primary(createLogger('silent'), new Totals())
  t.after(() => primary.killAll())
  const config = loadConfig({ POWGATE_WORKERS: '2' })
  await within(60_000, primary.start({ config, settings: {} }), () => 'the start')
})
