/**
 * Ends the process, with one line, where powgate is not tested or its native modules have no binary. Imported first, because
 * the import of a native module that does not fit throws an error that nobody can act on. On Node.js 24, lmdb's shared
 * buffers let an earlier version of this service accept a nonce twice, so untested lines are refused.
 */

export interface Platform {
  /** Of Node.js, such as `22.11.0`. */
  readonly version: string
  readonly system: string
  readonly processor: string
  /** Version of glibc, on Linux; undefined with another C library. */
  readonly glibc: string | undefined
}

const LINES = [20, 22]
const MINOR_MIN = { 20: 12 } as Readonly<Record<number, number>>
const PROCESSORS = ['x64', 'arm64']
/** Node.js' own minimum; uWebSockets.js needs 2.27. The embedded store needs more (store/embedded/lmdb-platform.ts). */
const GLIBC_MINOR_MIN = 28

/** What does not fit and what would, in one line; undefined if all fits. */
export function unsupported({ version, system, processor, glibc }: Platform): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (!LINES.includes(major) || minor < (MINOR_MIN[major] ?? 0))
    return `powgate runs on Node.js 20 (from 20.12) and 22; this is ${version}. Try: npx -y -p node@22 -c "npm start"`
  if (!PROCESSORS.includes(processor))
    return `powgate runs on x64 and arm64 processors; this Node.js is for ${processor}.`
  const isOld = glibc !== undefined && Number(glibc.split('.')[1]) < GLIBC_MINOR_MIN
  if (system !== 'linux' || (glibc !== undefined && !isOld)) return undefined
  const found = isOld ? `glibc ${glibc}` : 'another C library, such as musl on Alpine'
  return `powgate runs on Linux with glibc 2.${GLIBC_MINOR_MIN} or newer; this is ${found}. Try the image node:22-bookworm-slim.`
}

function thisPlatform(): Platform {
  const { versions, platform, arch, report } = process
  const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } }
  return { version: versions.node, system: platform, processor: arch, glibc: header.glibcVersionRuntime }
}

const problem = unsupported(thisPlatform())
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`)
  process.exit(1)
}
