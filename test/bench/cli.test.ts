/** The command line of all benches and of the torture suite: one parser, one table of options each. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COMPARE } from '../../bench/compare/main.ts'
import { HTTP } from '../../bench/http/main.ts'
import { MICRO } from '../../bench/micro/main.ts'
import { UsageError } from '../harness/command-line.ts'
import { runBench } from './run-bench.ts'

test('mistakes are told in one line that says what was expected', () => {
  const mistakes = [
    [HTTP, ['--store', 'disk'], /^--store: expected one of embedded, redis, got "disk"$/],
    [HTTP, ['--seconds', '0'], /^--seconds: expected a number from 0\.1 to 60, got "0"$/],
    [HTTP, ['--repeat', '1.5'], /^--repeat: expected an integer from 1 to 100/],
    [HTTP, ['--nonsense'], /^--nonsense: there is no such flag; .*--store/],
    [HTTP, ['--seconds', '1', '--seconds', '2'], /^--seconds: expected once$/],
    [MICRO, ['x'], /^unexpected argument "x"; usage: npm run bench -- \[flags\]$/],
    [MICRO, ['--filter', 'nothing like it'], /^--filter: expected a part of one of: whole /],
    [COMPARE, [], /^REV: missing; expected one revision/],
  ] as const
  for (const [{ parse }, args, problem] of mistakes) {
    assert.throws(
      () => parse(args),
      (error: Error) => {
        assert.ok(error instanceof UsageError, `${args}: ${error.stack}`)
        assert.match(error.message, problem)
        return !error.message.includes('\n')
      },
    )
  }
})

test('a call that cannot be understood ends with 2 and starts nothing, help with 0', async () => {
  await assert.rejects(runBench('nonsense'), { code: 2, stderr: /^expected one of micro, http, .*\n$/ })
  await assert.rejects(runBench('compare', 'no-such-revision'), {
    code: 2,
    stderr: 'there is no revision "no-such-revision" here\n',
  })
  const { stdout } = await runBench('http', '--help')
  assert.match(stdout, /^Measures the service over HTTP [\s\S]*\nUsage: npm run bench:http -- \[flags\]\n/)
  assert.match(stdout, /\n {2}--seconds N +Measured time of a case; 0\.1 to 60, default 3\.\n/)
})
