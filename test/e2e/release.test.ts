/** scripts/release.sh: what is no release is refused, with every reason; the rest of it needs a registry. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'

const ROOT = new URL('../..', import.meta.url).pathname
const release = (...args: string[]) => spawnSync('scripts/release.sh', args, { cwd: ROOT, encoding: 'utf8' })
const read = (path: string) => readFileSync(`${ROOT}/${path}`, 'utf8')

test('a release with placeholders, or of another version, is refused; its notes are those of CHANGELOG.md', () => {
  const { status, stderr } = release('check', 'v9.8.7')
  assert.equal(status, 1)
  for (const manifest of ['package.json', 'client/package.json']) {
    assert.match(stderr, new RegExp(`^${manifest}: expected version 9\\.8\\.7, got `, 'm'))
    for (const field of ['repository', 'bugs', 'homepage'])
      assert.match(
        stderr,
        new RegExp(`^${manifest}: expected the address .* in ${field}, got a placeholder$`, 'm'),
      )
  }
  assert.match(stderr, /^CHANGELOG\.md: expected a section ## 9\.8\.7$/m)
  const notes = release('notes', 'v0.1.0').stdout
  assert.ok(notes.length > 100 && read('CHANGELOG.md').includes(notes.trim()))
  assert.equal(release('publish', '.').status, 1)
  assert.equal(release().status, 2)
})

test('each step of a workflow is an action, or a script of this repository', () => {
  for (const name of ['checks', 'release']) {
    const { jobs } = parse(read(`.github/workflows/${name}.yml`))
    for (const { steps } of Object.values(jobs) as { steps: { uses?: string; run?: string }[] }[])
      for (const { uses, run } of steps)
        assert.match(uses ?? run ?? '', /^(\w[\w-]*\/[\w-]+@v\d+$|\.ci\/run$|scripts\/|npm |git config )/)
  }
})
