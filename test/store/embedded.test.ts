import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KEPT_MS_MAX, keptMs } from '../../src/domain/meters.ts'
import { openEmbedded, serveStore } from '../harness/embedded.ts'
import { storeConformance } from './conformance.ts'
import { openTwice, type TestStore } from './harness.ts'

async function make(): Promise<TestStore> {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-embedded-'))
  let shared = { now: 0 }
  const now = () => shared.now
  const server = await serveStore(dataDir, { clocks: { monotonicMs: now, wallMs: now } })
  const opened = await openTwice(
    clock => {
      shared = clock
      return openEmbedded(dataDir, { clock: () => clock.now })
    },
    async () => {
      await server.close(false)
      rmSync(dataDir, { recursive: true, force: true })
    },
  )
  const expires = async (name: string) => {
    const key = name.startsWith('e:') ? name : `e:${name}`
    const meter = server.state.meters.get(key)
    if (meter === undefined) return -1
    const keepMs = name.startsWith('e:born') ? KEPT_MS_MAX : keptMs(meter)
    return (meter.atMs + keepMs - opened.clock.now) / 1000
  }
  return { ...opened, expires }
}

storeConformance('embedded', make)
