import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const SECRET = 'a secret of the operator'
const PROGRAM = `
  import { logDestination } from './src/log/logger.ts'
  import { createLogger } from './src/log/logger.ts'
  const log = createLogger('info', { worker: 2 }, [${JSON.stringify(SECRET)}], await logDestination(process.env.FORMAT))
  log.info({ port: 8080 }, 'listening')
  log.fatal('gone with ${SECRET}')
  process.exit(1)`

/** Lines of a process that logs two and exits at once, which may change their order. */
function logged(format: string): string[] {
  const { stdout, stderr } = spawnSync('node', ['--import', 'tsx', '--input-type=module', '-e', PROGRAM], {
    cwd: new URL('../..', import.meta.url).pathname,
    env: { ...process.env, FORMAT: format },
    encoding: 'utf8',
  })
  assert.equal(stderr, '')
  assert.ok(!stdout.includes(SECRET), stdout)
  return stdout.trimEnd().split('\n').sort()
}

test('text is for people: time, level, message and fields, up to the last line before an exit', () => {
  const lines = logged('text')
  assert.equal(lines.length, 2)
  const [first, last] = lines
  assert.match(first!, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: listening \{"worker":2,"port":8080\}$/)
  assert.match(last!, /^\[[\d:.]+\] FATAL: gone with \S/)
})

test('JSON goes where no terminal is, by default too', () => {
  for (const format of ['json', 'auto']) {
    const levels = logged(format).map(line => JSON.parse(line).level)
    assert.deepEqual(levels.sort(), ['fatal', 'info'])
  }
})
