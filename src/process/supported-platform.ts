/**
 * Ends the process with a helpful message if powgate does not run on this platform or version of Node.js, or the working directory
 * is gone. Must be imported first, because other modules would throw an unhelpful error.
 */

import { existsSync } from 'node:fs'

interface Platform {
  readonly version: string
  readonly system: string
  readonly processor: string
  /** undefined with another C library. */
  readonly glibc: string | undefined
  readonly hasServer24: boolean
}

const MINOR_MIN: Readonly<Record<number, number>> = { 20: 12, 22: 0, 24: 0 }
const PROCESSORS = ['x64', 'arm64']
/** Node.js' own binaries need glibc 2.28. */
const GLIBC_MINOR_MIN = 28
/** The build of the HTTP server (uWebSockets.js) for Node.js 24 needs a newer glibc. */
const GLIBC_MINOR_MIN_24 = 38
/** Node.js 24 needs this build of the HTTP server: the one in the lock file has no binary for it. */
const SERVER_24 = 'uWebSockets.js@npm:@btc-vision/uwebsockets.js@20.57.0'
/** The version of native modules in Node.js 24. */
const MODULES_24 = '137'
const TRY_22 = 'npx -y -p node@22 -c "npm start"'

/** Returns why powgate does not run on a platform, and what to do; undefined if it does. */
export function unsupported(platform: Platform): string | undefined {
  const { version, system, processor, glibc, hasServer24 } = platform
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (minor < (MINOR_MIN[major] ?? Infinity))
    return `powgate runs on Node.js 20 (from 20.12), 22 and 24; this is ${version}. Try: ${TRY_22}`
  if (system !== 'linux')
    return `powgate runs on Linux; this is ${system}. For development, use the image node:22-bookworm-slim.`
  if (!PROCESSORS.includes(processor))
    return `powgate runs on x64 and arm64 processors; this Node.js is for ${processor}.`
  const minorMin = major === 24 ? GLIBC_MINOR_MIN_24 : GLIBC_MINOR_MIN
  if (glibc === undefined || Number(glibc.split('.')[1]) < minorMin) {
    const found = glibc !== undefined ? `glibc ${glibc}` : 'another C library, such as musl on Alpine'
    const on = major === 24 ? 'on Node.js 24 needs' : 'runs on'
    return `powgate ${on} Linux with glibc 2.${minorMin} or newer; this is ${found}. Try the image node:22-bookworm-slim.`
  }
  if (major === 24 && !hasServer24)
    return `powgate on Node.js 24 needs another build of its HTTP server: npm install --no-save ${SERVER_24}. Or try: ${TRY_22}`
  return undefined
}

function thisPlatform(): Platform {
  const { versions, platform, arch, report } = process
  const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } }
  const glibc = header.glibcVersionRuntime
  const file = `uws_${platform}_${arch}_${MODULES_24}.node`
  // Looked for on Node.js 24 only: 18 has no import.meta.resolve.
  const hasServer24 =
    versions.modules === MODULES_24 && existsSync(new URL(file, import.meta.resolve('uWebSockets.js')))
  return { version: versions.node, system: platform, processor: arch, glibc, hasServer24 }
}

/** In a deleted directory Node.js loads no CommonJS package. */
function deletedDirectory(): string | undefined {
  try {
    process.cwd()
    return undefined
  } catch {
    return 'the working directory is gone: change to another, and start powgate there'
  }
}

const problem = deletedDirectory() ?? unsupported(thisPlatform())
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`)
  process.exit(1)
}
