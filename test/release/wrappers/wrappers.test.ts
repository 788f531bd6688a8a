/**
 * React, Vue and Svelte in Chromium with a running service: third-party wrappers with the scripts of /compat/, the element itself,
 * and our own wrappers of it (client/page). Vendors' npm packages for backends redeem the tokens. Pages reach the service through a
 * gateway, as another origin; backends call it directly.
 */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import https from 'node:https'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'
import type { Page } from 'playwright-core'
import { Client } from '../../harness/client.ts'
import { eventually } from '../../harness/eventually.ts'
import { installNpmPackages } from '../../harness/packages.ts'
import { UNLIMITED } from '../../harness/service.ts'
import { closePage, EXPIRED_MS, startStage, visit } from '../../harness/widget.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const need = createRequire(`${FOLDER}package.json`)
const { browser, service, site, gateway, pages } = await startStage(UNLIMITED)
installNpmPackages(FOLDER)

const TURNSTILE = 'src="/compat/turnstile.js?render=explicit"'
/** By this id @marsidev/react-turnstile finds a script that is there already. */
const TURNSTILE_BY_ID = `id="cf-turnstile-script" ${TURNSTILE}`
const RECAPTCHA = 'src="/compat/recaptcha.js?render=explicit"'

/** `script`: attributes of a script before the app, for a wrapper that knows only its vendor's address, or for the element itself. */
const WRAPPERS: readonly (readonly [app: string, field: string, name: string, script?: string])[] = [
  ['turnstile-react', 'cf-turnstile-response', '@marsidev/react-turnstile', TURNSTILE_BY_ID],
  ['turnstile-vue', 'cf-turnstile-response', 'vue-turnstile', TURNSTILE],
  ['hcaptcha-react', 'h-captcha-response', '@hcaptcha/react-hcaptcha'],
  ['hcaptcha-vue', 'h-captcha-response', '@hcaptcha/vue3-hcaptcha'],
  ['recaptcha-react', 'g-recaptcha-response', 'react-google-recaptcha', RECAPTCHA],
  ['element-svelte', 'powgate-token', 'Svelte', 'src="/widget.js"'],
  ['element-react', 'powgate-token', 'React', 'src="/widget.js"'],
  ['element-vue', 'powgate-token', 'Vue', 'src="/widget.js"'],
  ['page-svelte', 'powgate-token', 'powgate-page/svelte'],
  ['page-react', 'powgate-token', 'powgate-page/react'],
  ['page-vue', 'powgate-token', 'powgate-page/vue'],
]

/** hcaptcha and express-recaptcha have their vendor's address in their code: all connections of HTTPS lead to the service instead. */
https.globalAgent = Object.assign(new https.Agent(), {
  createConnection: () => connect(service.port, '127.0.0.1'),
})

/** What a backend makes of a token, by a package for the field's vendor, or by a request of its own: `ok` or a code. */
type Backend = (response: string) => Promise<string>

interface Answer {
  readonly success: boolean
  readonly 'error-codes': readonly string[]
}

const wordOf = (answer: Answer) => (answer.success ? 'ok' : answer['error-codes'][0]!)

const plainly: Backend = async response =>
  wordOf((await new Client(service.url).siteverify({ secret: site.apiKey, response })).json)

/** By the form's field. Each backend of a field gets a token of its own. */
const BACKENDS: Readonly<Record<string, readonly Backend[]>> = {
  'powgate-token': [plainly],
  'cf-turnstile-response': [plainly],
  'h-captcha-response': [async response => wordOf(await need('hcaptcha').verify(site.apiKey, response))],
  'g-recaptcha-response': [
    response => {
      const backend = new (need('google-recaptcha'))({
        secret: site.apiKey,
        apiUrl: `${service.url}/siteverify`,
      })
      const told = (resolve: (word: string) => void) => (_: unknown, answer: Answer) =>
        resolve(wordOf(answer))
      return new Promise(resolve => backend.verify({ response }, told(resolve)))
    },
    response => {
      const backend = new (need('express-recaptcha').RecaptchaV2)(site.siteKey, site.apiKey)
      backend._api.verify = '/siteverify' // its path is Google's
      const request = { body: { 'g-recaptcha-response': response } }
      return new Promise(resolve => backend.verify(request, (code: string | null) => resolve(code ?? 'ok')))
    },
  ],
}

const SVELTE: Plugin = {
  name: 'svelte',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.svelte$/ }, ({ path }) => {
      const { compile } = need('svelte/compiler')
      return { contents: compile(readFileSync(path, 'utf8'), { filename: path }).js.code }
    }),
}

/** The value of the count-th call that the app has noted under this name (apps/page.js). */
async function called(page: Page, name: string, count = 1): Promise<string> {
  const calls = () =>
    page.evaluate(`window.calls.filter(([name]) => name === '${name}').map(([, value]) => String(value))`)
  return eventually(60_000, `${name} ${count}`, async () => ((await calls()) as string[])[count - 1])
}

for (const [app, field, name, script] of WRAPPERS)
  test(`${name}: a token, another after its expiry and after a reset; the form brings the last, which is redeemed once`, async () => {
    const host = gateway.origin()
    const { outputFiles } = await build({
      absWorkingDir: FOLDER,
      entryPoints: [`apps/${app}.js`],
      bundle: true,
      write: false,
      format: 'iife',
      define: { 'process.env.NODE_ENV': '"production"' },
      plugins: [SVELTE],
      nodePaths: [`${FOLDER}node_modules`],
      logLevel: 'silent',
    })
    pages.add('/app.js', outputFiles[0]!.text)
    const tag = script === undefined ? '' : `<script ${script.replace('src="', `src="${host}`)}></script>`
    pages.add(
      '/form',
      `<!doctype html><html lang="en" data-host="${host}" data-site-key="${site.siteKey}"><head><title>A form</title>
<meta charset="utf-8">${tag}</head><body><form action="/received" method="post"><input name="name" value="Ada">
<div id="app"></div><button>Send</button></form><script src="/app.js"></script></body></html>`,
    )
    pages.forms.length = 0
    const prepare = (page: Page) => page.clock.install()
    const { page, notes } = await visit(browser, `${pages.origin()}/form`, { prepare })
    const expired = await called(page, 'passed')
    await page.clock.fastForward(EXPIRED_MS)
    await called(page, 'expired')
    const renewed = await called(page, 'passed', 2)
    await page.keyboard.press('Shift') // without it, boxes of hCaptcha and reCAPTCHA wait for somebody after a reset
    await page.evaluate('resetCaptcha()')
    const sent = await called(page, 'passed', 3)
    assert.equal(new Set([expired, renewed, sent]).size, 3)
    await page.click('text=Send')
    const fields = await eventually(60_000, 'the form arrives', () => pages.forms[0])
    assert.equal(fields.get(field), sent)
    assert.equal(fields.has('powgate-token'), field === 'powgate-token')
    assert.deepEqual(notes.pageErrors, [])
    const unspent = [sent, renewed] // a field has two backends at most
    for (const redeem of BACKENDS[field]!) {
      const token = unspent.shift()!
      assert.equal(await redeem(token), 'ok')
      assert.equal(await redeem(token), 'timeout-or-duplicate')
    }
    await closePage(page)
  })
