/** Wrong clocks for a service's processes, by libfaketime (the Debian package `faketime`). */

import { existsSync, readdirSync, writeFileSync } from 'node:fs'

const ROOT = '/usr/lib'

function library(): string {
  for (const folder of readdirSync(ROOT)) {
    const path = `${ROOT}/${folder}/faketime/libfaketime.so.1`
    if (existsSync(path)) return path
  }
  throw new Error('libfaketime is not there: apt-get install faketime')
}

/** Settings of a service whose wall clock is shifted; timers are not affected. @param skew as "+5s" */
export function skewedBy(skew: string): Record<string, string> {
  return { LD_PRELOAD: library(), FAKETIME: skew, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
}

/** Like `skewedBy`, with a skew that can change while the service runs: the last value passed to `step`. */
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
