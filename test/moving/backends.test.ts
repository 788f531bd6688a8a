/** Backends that nobody here wrote, each through its own code: only their settings name powgate's address and keys. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client } from '../harness/client.ts'
import { TestService, type TestSite, UNLIMITED } from '../harness/service.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const PROXY = '127.255.255.254'
const HOSTS = ['shop.example', 'www.shop.example']

let service: TestService
let site: TestSite

before(async () => {
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const { status, stderr } = spawnSync('npm', args, { cwd: FOLDER, encoding: 'utf8' })
  assert.equal(status, 0, `npm ci in test/moving failed: ${stderr}`)
  service = await TestService.start('embedded', { ...UNLIMITED, POWGATE_TRUSTED_PROXIES: PROXY })
  const origins = [...HOSTS, 'other.example'].map(host => `https://${host}`)
  site = await service.createSite({ difficulty: { base: 16, min: 16, max: 28 }, origins })
})
after(() => service.stop())

/** A token of a page at this host, which an IPv6 visitor had open. */
async function tokenFrom(address: string, host: string, action?: string): Promise<string> {
  const client = new Client(service.url)
  const visitor = { from: PROXY, headers: { 'X-Forwarded-For': address, Origin: `https://${host}` } }
  const solution = await client.solved(site.siteKey, visitor, action === undefined ? {} : { action })
  const { json, text } = await client.verify(site.siteKey, solution, visitor)
  assert.equal(json.passed, true, text)
  return json.token
}

/** The packages have no types here: they are installed by the test. */
const load = (name: string) => import(name)

for (const [provider, path, checks] of [
  ['cloudflare-turnstile', '/turnstile/v0/siteverify', true],
  ['google-recaptcha', '/recaptcha/api/siteverify', true],
  ['hcaptcha', '/siteverify', false], // better-auth has neither option for hCaptcha
] as const)
  test(`better-auth, ${provider}: an IPv6 visitor signs up, once; another action, host or network does not`, async () => {
    const { betterAuth } = await load('better-auth')
    const { memoryAdapter } = await load('better-auth/adapters/memory')
    const { captcha } = await load('better-auth/plugins')
    const database = { user: [] as { email: string }[], session: [], account: [], verification: [] }
    const auth = betterAuth({
      baseURL: 'https://shop.example',
      secret: 'a secret of the tests, long enough for better-auth',
      database: memoryAdapter(database),
      emailAndPassword: { enabled: true },
      telemetry: { enabled: false },
      logger: { disabled: true },
      plugins: [
        captcha({
          provider,
          secretKey: site.apiKey,
          siteVerifyURLOverride: service.url + path,
          ...(checks ? { expectedAction: 'sign_up', allowedHostnames: HOSTS } : { siteKey: site.siteKey }),
        }),
      ],
    })
    const signUp = async (token: string, from: string, email: string) => {
      const headers = {
        'Content-Type': 'application/json',
        'X-Captcha-Response': token,
        'X-Forwarded-For': from,
      }
      const body = JSON.stringify({ email, password: 'a long password', name: 'Ada' })
      const url = 'https://shop.example/api/auth/sign-up/email'
      return (await auth.handler(new Request(url, { method: 'POST', headers, body }))).status
    }
    const visitor = '2001:db8:0:7:1:2:3:4'
    const token = await tokenFrom(visitor, 'www.shop.example', 'sign_up')
    assert.equal(await signUp(token, '2001:db8:0:8::1', 'thief@shop.example'), 403)
    assert.equal(await signUp(token, visitor, 'ada@shop.example'), 200)
    assert.equal(await signUp(token, visitor, 'again@shop.example'), 403)
    for (const [host, action] of [
      ['www.shop.example', 'sign_in'],
      ['www.shop.example', undefined],
      ['other.example', 'sign_up'],
    ] as const) {
      const status = await signUp(
        await tokenFrom(visitor, host, action),
        visitor,
        `${host}-${action}@shop.example`,
      )
      assert.equal(status, checks ? 403 : 200, `${host} ${action}`)
    }
    assert.equal(database.user[0]!.email, 'ada@shop.example')
    assert.equal(database.user.length, checks ? 1 : 4)
  })
