/** The command line of all benches and of the torture suite: one parser, one table of options each. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COMPARE } from '../../bench/compare/main.ts'
import { HTTP } from '../../bench/http/main.ts'
import { MICRO } from '../../bench/micro/main.ts'
import { EFFECT } from '../../bench/simulator/main.ts'
import { SOLVER } from '../../bench/solver/main.ts'
import { STORE } from '../../bench/store/main.ts'
import { UsageError } from '../harness/command-line.ts'
import { runBench } from './run-bench.ts'

test('options have their defaults, their bounds and their names', () => {
  const { store, endpoint, seconds, rate, busy, direct, json } = HTTP.parse([])
  assert.deepEqual([store, busy, seconds], [['embedded', 'redis'], ['25', '50', '75'], 3])
  assert.deepEqual([rate, direct, json], [undefined, false, false])
  assert.deepEqual(endpoint, ['challenge', 'verify', 'verify-token'])
  const given = HTTP.parse(['--endpoint', 'verify', '--seconds', '0.1', '--rate', '1', '--direct', '--json'])
  assert.deepEqual([given.endpoint, given.seconds, given.rate], [['verify'], 0.1, 1])
  assert.ok(given.direct && given.json)
  assert.equal(STORE.parse(['--max-addresses', '1000']).maxAddresses, 1000)
  assert.deepEqual(STORE.parse(['--only', 'growth', '--only', 'costs']).only, ['costs', 'growth'])
  assert.deepEqual(SOLVER.parse(['--filter', 'hash-wasm', '--filter', 'CAP.JS']).filter, ['cap', 'hashWasm'])
})

test('mistakes are told in one line that says what was expected', () => {
  const mistakes = [
    [HTTP, ['--store', 'disk'], /^--store: expected one of embedded, redis, got "disk"$/],
    [HTTP, ['--seconds', '0'], /^--seconds: expected a number from 0\.1 to 60, got "0"$/],
    [HTTP, ['--repeat', '1.5'], /^--repeat: expected an integer from 1 to 100/],
    [HTTP, ['--connections', ''], /^--connections: expected an integer/],
    [HTTP, ['--busy', '80'], /^--busy: expected one of 25, 50, 75, got "80"$/],
    [HTTP, ['--nonsense'], /^--nonsense: there is no such flag; .*--store/],
    [HTTP, ['--seconds', '1', '--seconds', '2'], /^--seconds: expected once$/],
    [MICRO, ['x'], /^unexpected argument "x"; usage: npm run bench -- \[flags\]$/],
    [MICRO, ['--filter', 'nothing like it'], /^--filter: expected a part of one of: whole /],
    [STORE, ['--operations', '99'], /^--operations: expected an integer from 100 /],
    [SOLVER, ['--json', 'FILE'], /^unexpected argument "FILE"/],
    [COMPARE, [], /^REV: missing; expected one revision/],
    [COMPARE, ['HEAD', 'HEAD'], /^unexpected argument "HEAD"/],
    [COMPARE, ['HEAD', '--threshold', '0.9'], /^--threshold: expected a number from 1 /],
    [EFFECT, ['--seed', '0'], /^--seed: expected an integer/],
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
