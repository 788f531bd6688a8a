/** The samples of docs/proxies.md: the programs take them, and each of their lines about powgate is what these tests run. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { freePort } from '../support/ports.ts'

const PAGE = readFileSync(new URL('../../docs/proxies.md', import.meta.url), 'utf8')
const TESTED = readFileSync(new URL('../support/proxies.ts', import.meta.url), 'utf8')
const dir = mkdtempSync(join(tmpdir(), 'powgate-samples-'))
after(() => rmSync(dir, { recursive: true }))

const [key, certificate, both] = ['key.pem', 'certificate.pem', 'both.pem'].map(name => join(dir, name))
const subject = ['-subj', '/CN=captcha.example.com', '-days', '2']
execFileSync(
  'openssl',
  ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key!, '-out', certificate!, ...subject],
  { stdio: 'ignore' },
)
writeFileSync(both!, readFileSync(certificate!, 'utf8') + readFileSync(key!, 'utf8'))

function samples(language: string): string[] {
  return Array.from(PAGE.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs')), ([, text]) => text!)
}

/** The directives of a sample, without those that say where things are. */
function linesOf(sample: string): string[] {
  const lines = sample.split('\n').map(line => line.replace(/#.*/, '').trim())
  return lines.filter(line => /^(proxy_|keepalive |option |http-request )/.test(line))
}

test('nginx takes its sample', async () => {
  const [sample, ...more] = samples('nginx')
  assert.equal(more.length, 0)
  const here = sample!
    .replace('listen 443 ssl', `listen 127.0.0.1:${await freePort()} ssl`)
    .replace(/(ssl_certificate +).*;/, `$1${certificate};`)
    .replace(/(ssl_certificate_key +).*;/, `$1${key};`)
  const path = join(dir, 'nginx.conf')
  writeFileSync(path, `pid ${dir}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${here}}\n`)
  execFileSync('nginx', ['-t', '-e', 'stderr', '-p', dir, '-c', path], { stdio: 'pipe' })
  assert.ok(linesOf(sample!).length > 6)
  for (const line of linesOf(sample!)) assert.ok(TESTED.includes(line), line)
})

test('HAProxy takes its samples', () => {
  const all = samples('haproxy')
  assert.equal(all.length, 2)
  for (const sample of all) {
    const path = join(dir, 'haproxy.cfg')
    writeFileSync(path, sample.replace('/etc/haproxy/captcha.example.com.pem', both!))
    execFileSync('haproxy', ['-c', '-f', path], { stdio: 'pipe' })
    for (const line of linesOf(sample)) assert.ok(TESTED.includes(line), line)
  }
})
