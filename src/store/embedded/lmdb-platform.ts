/** Imported before lmdb, whose binary needs a newer glibc than Node.js and says so badly. */

import { StoreSetupError } from '../store.ts'

/** Of lmdb 3.5. */
const GLIBC_MINOR_MIN = 34

/** @param glibc for example `2.36`; undefined with another C library */
export function checkGlibc(glibc: string | undefined): void {
  if (glibc === undefined || Number(glibc.split('.')[1]) >= GLIBC_MINOR_MIN) return
  throw new StoreSetupError(
    `POWGATE_DATA_DIR: the embedded store needs glibc 2.${GLIBC_MINOR_MIN} or newer; this is ${glibc}. Set REDIS_URL, or use a newer system, such as the image node:22-bookworm-slim`,
  )
}

const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
checkGlibc(header.glibcVersionRuntime)
