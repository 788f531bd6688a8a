/** Backends that nobody here wrote, each through its own code: only settings (for Perl's, one argument) name powgate. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Solution } from '../../../src/protocol/wire.ts'
import { Client, HONEST_ENVIRONMENT } from '../../harness/client.ts'
import { installNpmPackages } from '../../harness/packages.ts'
import { EASY, TestService, UNLIMITED } from '../../harness/service.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const run = promisify(execFile)
/** Visitors here have addresses that are not of this machine: a trusted proxy names them in X-Forwarded-For. */
const PROXY = '127.255.255.254'
const HOSTS = ['shop.example', 'www.shop.example']

installNpmPackages(FOLDER)
const service = await TestService.start('embedded', { ...UNLIMITED, POWGATE_TRUSTED_PROXIES: PROXY })
const origins = [...HOSTS, 'other.example'].map(host => `https://${host}`)
const site = await service.createSite({ difficulty: EASY, origins })

/** A token of a page at this host, which a visitor at this address had open. */
async function tokenFrom(address: string, host: string, more: Partial<Solution> = {}): Promise<string> {
  const client = new Client(service.url)
  const visitor = { from: PROXY, headers: { 'X-Forwarded-For': address, Origin: `https://${host}` } }
  const solution = await client.solved(site.siteKey, visitor, more)
  const { json, text } = await client.verify(site.siteKey, solution, visitor)
  assert.equal(json.passed, true, text)
  return json.token
}

/** The packages have no types here: they are installed by the test. */
const load = (name: string) => import(name)

for (const [provider, path, canCheck] of [
  ['cloudflare-turnstile', '/turnstile/v0/siteverify', true],
  ['google-recaptcha', '/recaptcha/api/siteverify', true],
  ['hcaptcha', '/siteverify', false], // of hCaptcha, better-auth takes a site key to send, but no action or host to check
] as const)
  test(`better-auth, ${provider}: an IPv6 visitor signs up, once; another network, action or host does not, if checked`, async () => {
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
          ...(canCheck ? { expectedAction: 'sign_up', allowedHostnames: HOSTS } : { siteKey: site.siteKey }),
        }),
      ],
    })
    const signUp = async (token: string, from: string, email: string) => {
      const type = { 'Content-Type': 'application/json' }
      const headers = { ...type, 'X-Captcha-Response': token, 'X-Forwarded-For': from }
      const body = JSON.stringify({ email, password: 'a long password', name: 'Ada' })
      const url = 'https://shop.example/api/auth/sign-up/email'
      return (await auth.handler(new Request(url, { method: 'POST', headers, body }))).status
    }
    // better-auth sends the /64 of the visitor's address, and powgate compares it so: the thief is in the next one.
    const visitor = '2001:db8:0:7:1:2:3:4'
    const token = await tokenFrom(visitor, 'www.shop.example', { action: 'sign_up' })
    assert.equal(await signUp(token, '2001:db8:0:8::1', 'thief@shop.example'), 403)
    assert.equal(await signUp(token, visitor, 'ada@shop.example'), 200)
    assert.equal(await signUp(token, visitor, 'again@shop.example'), 403)
    const wrongActionsAndHosts: readonly (readonly [string, Partial<Solution>])[] = [
      ['www.shop.example', { action: 'sign_in' }],
      ['www.shop.example', {}],
      ['other.example', { action: 'sign_up' }],
    ]
    for (const [host, more] of wrongActionsAndHosts) {
      const about = `${host}-${more.action}`
      const status = await signUp(await tokenFrom(visitor, host, more), visitor, `${about}@shop.example`)
      assert.equal(status, canCheck ? 403 : 200, about)
    }
    assert.equal(database.user[0]!.email, 'ada@shop.example')
    assert.equal(database.user.length, canCheck ? 1 : 1 + wrongActionsAndHosts.length)
  })

test('@nestlab/google-recaptcha: a token of its action and of a score high enough passes, once; no other does', async () => {
  const { NestFactory } = await load('@nestjs/core')
  const { GoogleRecaptchaModule, GoogleRecaptchaValidator } = await load('@nestlab/google-recaptcha')
  const recaptcha = GoogleRecaptchaModule.forRoot({
    secretKey: site.apiKey,
    network: `${service.url}/recaptcha/api/siteverify`,
    response: () => '',
    score: 0.9,
    actions: ['login'],
  })
  const app = await NestFactory.createApplicationContext(recaptcha, { logger: false })
  const outcome = async (token: string) => {
    const { success, score, action, errors } = await app
      .get(GoogleRecaptchaValidator)
      .validate({ response: token })
    return { success, score, action, errors }
  }
  const tokenOf = (more: Partial<Solution>) => tokenFrom('203.0.113.7', 'shop.example', more)
  const token = await tokenOf({ action: 'login' })
  assert.deepEqual(await outcome(token), { success: true, score: 1, action: 'login', errors: [] })
  const { success, errors } = await outcome(token)
  assert.deepEqual({ success, errors }, { success: false, errors: ['timeout-or-duplicate'] })

  // These three signals take 0.15, 0.25 and 0.05 from the score, which is then too low for `score: 0.9`.
  const suspect = { ...HONEST_ENVIRONMENT, chromeAbsent: true, swiftShader: true, notificationDenied: true }
  const low = await outcome(await tokenOf({ action: 'login', environment: suspect }))
  assert.deepEqual(low, { success: false, score: 0.55, action: 'login', errors: ['low-score'] })
  for (const action of ['signup', undefined]) {
    const other = await outcome(await tokenOf(action === undefined ? {} : { action }))
    const told = { score: 1, action: action ?? '', errors: ['forbidden-action'] }
    assert.deepEqual(other, { success: false, ...told })
  }
  await app.close()
})

/** Programs of Debian's packages, set as http-api.md says. Each prints whether its arguments pass: URL, API key, token, address. */
const PROGRAMS: Readonly<Record<string, readonly [command: string, ...args: string[]]>> = {
  'the recaptcha gem of Ruby, which asks by GET': [
    'ruby',
    '-e',
    `require 'recaptcha'
    Recaptcha.configure { |c| c.verify_url, c.secret_key = ARGV[0], ARGV[1] }
    include Recaptcha::Verify
    # as a controller has it
    def request = Struct.new(:remote_ip).new(ARGV[3])
    puts verify_recaptcha(response: ARGV[2])`,
  ],
  "Perl's Captcha::reCAPTCHA, which looks for a text in the answer": [
    'perl',
    '-MCaptcha::reCAPTCHA',
    '-e',
    // The package has no setting for the address, so its own function gets another argument.
    `my ($url, @asked) = @ARGV;
    my $post = \\&Captcha::reCAPTCHA::_post_request;
    { no warnings 'redefine'; *Captcha::reCAPTCHA::_post_request = sub { $post->($_[0], $url, $_[2]) } }
    print Captcha::reCAPTCHA->new->check_answer_v2(@asked)->{is_valid} ? 'true' : 'false'`,
  ],
}

for (const [name, [command, ...args]] of Object.entries(PROGRAMS))
  test(`${name}: a token passes from its address, once`, async () => {
    const url = `${service.url}/recaptcha/api/siteverify`
    const token = await tokenFrom('203.0.113.7', 'shop.example')
    const passes = async (address: string) =>
      (await run(command, [...args, url, site.apiKey, token, address])).stdout.trim()
    assert.equal(await passes('203.0.113.8'), 'false')
    assert.equal(await passes('203.0.113.7'), 'true')
    assert.equal(await passes('203.0.113.7'), 'false')
  })
