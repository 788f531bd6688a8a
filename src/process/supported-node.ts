/**
 * Ends the process on a Node.js line that the tests do not cover. Imported first, before any native module is loaded. On
 * Node.js 24, lmdb's shared buffers let an earlier version of this service accept a nonce twice, so untested lines are
 * refused.
 */

const LINES = [20, 22]
const MINOR_MIN = { 20: 12 } as Readonly<Record<number, number>>

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (!LINES.includes(major) || minor < (MINOR_MIN[major] ?? 0)) {
  process.stderr.write(
    `powgate runs on Node.js 20 (from 20.12) and 22; this is ${process.versions.node}. Try: npx -y -p node@22 -c "npm start"\n`,
  )
  process.exit(1)
}
