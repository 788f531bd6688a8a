/** The declared types as projects use them: plain TypeScript, and JSX. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const ROOT = new URL('../../', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'powgate-types-'))
after(() => rmSync(folder, { recursive: true, force: true }))
cpSync(join(ROOT, 'src/widget/powgate.d.ts'), join(folder, 'powgate.d.ts'))

/** Compiles a program as a project with strict settings would; returns what the compiler objects to. */
function compile(name: string, source: string): string {
  writeFileSync(join(folder, name), source)
  const options = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom', '--module', 'esnext']
  const modern = [
    '--moduleResolution',
    'bundler',
    '--allowImportingTsExtensions',
    '--jsx',
    'preserve',
    '--types',
    '',
  ]
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const run = spawnSync(process.execPath, [compiler, ...options, ...modern, join(folder, name)], {
    cwd: folder,
    encoding: 'utf8',
  })
  return run.stdout + run.stderr
}

test('TypeScript: the element is known by its name, its events by theirs', () => {
  const use = `
    import type { PowGateError } from './powgate.d.ts'
    const gate = document.querySelector('pow-gate')!
    gate.addEventListener('verified', event => { const token: string = event.detail.token })
    gate.addEventListener('failed', ({ detail }) => { const code: string = detail.code })
    gate.addEventListener('click', event => { event.preventDefault() })
    const token: Promise<string> = gate.execute()
    const state: 'idle' | 'working' | 'verified' | 'failed' | 'expired' = gate.state
    token.catch((error: PowGateError) => error.status?.toFixed())
    gate.reset()
    gate.cancel()`
  assert.equal(compile('use.ts', use), '')
  assert.match(compile('wrong.ts', `${use}\n gate.verify()`), /verify/)
})

test('JSX: attributes are checked', () => {
  const declare = `
    import type { PowGateAttributes } from './powgate.d.ts'
    declare global { namespace JSX { interface IntrinsicElements { 'pow-gate': PowGateAttributes } } }`
  const element = (attributes: string) => `${declare}\nexport const gate = <pow-gate ${attributes} />`
  assert.equal(compile('use.tsx', element('site-key="k" auto="focus" invisible text-idle="Wait"')), '')
  assert.match(compile('wrong.tsx', element('site-key="k" auto="soon"')), /soon/)
  assert.match(compile('missing.tsx', element('auto="focus"')), /site-key/)
})
