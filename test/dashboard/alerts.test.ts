/** The rules for Prometheus, run by promtool on alerts.test.yml: each fires at its fault, at no host but that, and is silent before. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse, stringify } from 'yaml'
import { temporaryDir } from '../harness/temporary.ts'

const RULES = new URL('../../src/dashboard/alerts.yml', import.meta.url).pathname
const CASES = new URL('alerts.test.yml', import.meta.url).pathname

interface Rule {
  readonly alert: string
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>
}

interface Case {
  readonly alertname: string
  /** In the file labels and the summary side by side; the test puts what promtool expects in their place. */
  exp_alerts: (object & { readonly summary?: string })[]
}

const rules: readonly Rule[] = parse(readFileSync(RULES, 'utf8')).groups[0].rules
const TESTS: readonly { interval: string; alert_rule_test: Case[] }[] = parse(
  readFileSync(CASES, 'utf8'),
).tests
const perCase = TESTS.flatMap(one => one.alert_rule_test)

test('promtool: each rule fires at its fault, names the first thing to look at, and is silent before', () => {
  for (const one of perCase) {
    const { annotations } = rules.find(({ alert }) => alert === one.alertname)!
    one.exp_alerts = one.exp_alerts.map(({ summary, ...labels }) => ({
      exp_labels: labels,
      exp_annotations: { ...annotations, summary },
    }))
  }
  // Rules are evaluated as often as a case has samples, and promtool takes one interval a file.
  for (const interval of new Set(TESTS.map(one => one.interval))) {
    const tests = TESTS.filter(one => one.interval === interval)
    const file = join(temporaryDir('alerts'), 'test.yml')
    writeFileSync(file, stringify({ rule_files: [RULES], evaluation_interval: interval, tests }))
    execFileSync('promtool', ['test', 'rules', file], { stdio: 'pipe' })
  }
  const fired = perCase.filter(({ exp_alerts }) => exp_alerts.length > 0).map(({ alertname }) => alertname)
  assert.deepEqual([...new Set(fired)].sort(), rules.map(({ alert }) => alert).sort())
})
