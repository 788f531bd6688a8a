/** scripts/release.sh: what is no release is refused, with every reason; what is one passes. The rest of it needs a registry. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { temporaryDir } from '../harness/temporary.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const MANIFESTS = ['package.json', 'client/package.json']
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** A clone of its own, with the script as it is here. */
const clone = join(temporaryDir('release'), 'clone')
/** Without the identity of a workflow, `publish` ends before it sends anything. */
const env = { ...process.env, ACTIONS_ID_TOKEN_REQUEST_URL: '' }
const run = (program: string, ...args: string[]) =>
  spawnSync(program, args, { cwd: clone, env, encoding: 'utf8' })
const release = (...args: string[]) => run('scripts/release.sh', ...args)
const write = (path: string, text: string) => writeFileSync(join(clone, path), text)

assert.equal(spawnSync('git', ['clone', '-q', ROOT, clone]).status, 0)
write('scripts/release.sh', read('scripts/release.sh'))

/** Puts a version into all manifests, and the owner into the project's address wherever it stands, and commits that. */
function prepare(version: string, owner: string): void {
  const [, former] = /github\.com\/([^/]+)\/powgate/.exec(readFileSync(join(clone, 'package.json'), 'utf8'))!
  const placed = run('git', 'grep', '-l', `${former}/powgate`, '--', ':!test').stdout.trim().split('\n')
  assert.equal(run('sed', '-i', `s|${former}/powgate|${owner}/powgate|`, ...placed).status, 0)
  for (const path of [...MANIFESTS, 'package-lock.json']) {
    const manifest = JSON.parse(read(path))
    const address = `https://github.com/${owner}/powgate`
    const about = { repository: { type: 'git', url: address }, bugs: address, homepage: address }
    write(path, JSON.stringify({ ...manifest, version, ...(path.includes('lock') ? {} : about) }))
  }
  const who = ['-c', 'user.name=test', '-c', 'user.email=test@example.com']
  assert.equal(run('git', ...who, 'commit', '-qam', version).status, 0)
}

test('what is no release is refused, with every reason', () => {
  prepare('0.0.1', 'OWNER')
  write('docs/run.log', 'ignored by git')
  const { status, stderr } = release('check', 'v9.8.7')
  assert.equal(status, 1)
  for (const manifest of MANIFESTS) {
    assert.match(stderr, new RegExp(`^${manifest}: expected version 9\\.8\\.7, got 0\\.0\\.1$`, 'm'))
    for (const field of ['repository', 'bugs', 'homepage'])
      assert.match(stderr, new RegExp(`^${manifest}: .* in ${field}, got a placeholder$`, 'm'))
  }
  for (const line of [
    /^README\.md: expected the address of the project/m,
    /^src\/dashboard\/alerts\.yml: expected the address/m,
    /^package-lock\.json: expected version/m,
    /^CHANGELOG\.md: /m,
    /^git: .*ignored files/m,
  ])
    assert.match(stderr, line)
  assert.deepEqual([release('notes', 'v9.8.7').status, release('publish', '.').status], [1, 1])
  // A call that lacks a word ends with 2.
  assert.deepEqual([release().status, release('pack').status, release('image', 'v1').status], [2, 2, 2])
  rmSync(join(clone, 'docs/run.log'))
})

test('a release passes, and its notes are those of CHANGELOG.md', () => {
  write('CHANGELOG.md', '# Changes\n\n## 9.8.7\n\n- News.\n\n## 0.1.0\n')
  prepare('9.8.7', 'example')
  const { status, stderr } = release('check', 'v9.8.7')
  assert.deepEqual([status, stderr], [0, ''])
  assert.equal(release('notes', 'v9.8.7').stdout.trim(), '- News.')
})

test('the bill of materials names each package that is installed for production', () => {
  const { packages } = JSON.parse(release('sbom').stdout) as { packages: { name: string }[] }
  const lock: Record<string, { name?: string; dev?: true }> = JSON.parse(read('package-lock.json')).packages
  const shipped = Object.entries(lock).filter(([, { dev }]) => dev !== true)
  // Names alone: a tool may bring another version of a package that is shipped, such as ajv.
  const expected = shipped.map(([path, { name }]) => name ?? path.replace(/.*node_modules\//, ''))
  assert.deepEqual(new Set(packages.map(({ name }) => name)), new Set(expected))
})

interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps: readonly { uses?: string; run?: string; with?: Record<string, unknown> }[]
}

const ACTION = /^\w[\w-]*\/[\w-]+@[0-9a-f]{40}$/
/** A script of this repository, or one of these programs; none is piped into another. */
const COMMAND =
  /^(\.ci\/run( release)?|(scripts\/release\.sh|npm (ci|run|install -g npm@[\d.]+)|git (config|merge-base)|gh release create)( [^|;&\n]+)?)$/

test('each step of a workflow is an action at a commit, or commands of which each is known; no token is left to them', () => {
  for (const name of ['checks', 'docs', 'release']) {
    const { jobs, permissions } = parse(read(`.github/workflows/${name}.yml`))
    assert.deepEqual(permissions, { contents: 'read' })
    for (const job of Object.values<Job>(jobs))
      for (const { uses, run, with: inputs } of job.steps) {
        if (uses !== undefined) assert.match(uses, ACTION)
        else for (const command of run!.split(' && ')) assert.match(command, COMMAND)
        if (uses?.startsWith('actions/checkout@')) assert.equal(inputs?.['persist-credentials'], false, name)
        // Packages that are installed, or whatever tests run, could use the job's identity.
        if (job.permissions?.['id-token'] !== undefined)
          assert.doesNotMatch(run ?? '', /\.ci\/run|npm (ci|run|test)/)
      }
  }
})
