/** Clocks that are wrong: libfaketime, which comes with the Debian package `faketime`, in the processes of a service. */

import { existsSync, readdirSync, writeFileSync } from 'node:fs'

const ROOT = '/usr/lib'

function library(): string {
  for (const folder of readdirSync(ROOT)) {
    const path = `${ROOT}/${folder}/faketime/libfaketime.so.1`
    if (existsSync(path)) return path
  }
  throw new Error('libfaketime is not there: apt-get install faketime')
}

/** Settings of a service: only its wall clock is moved, timers go on. @param skew as "+5s" */
export function skewedBy(skew: string): Record<string, string> {
  return { LD_PRELOAD: library(), FAKETIME: skew, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
}

/** The same with a skew that can be changed while it runs: whatever `step` wrote last. */
export function steppedBy(file: string): { env: Record<string, string>; step(skew: string): void } {
  const step = (skew: string) => writeFileSync(file, `${skew}\n`)
  step('+0s')
  const env = {
    LD_PRELOAD: library(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
  return { env, step }
}
