/**
 * React and Vue in Chromium before a running service: wrappers that others wrote, with the scripts of /compat/, and the
 * element itself.
 */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { afterEach, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import { eventually } from '../harness/eventually.ts'
import { closePage, visit } from '../harness/widget-pages.ts'
import { startStage } from '../harness/widget-stage.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const { browser, service, site, gateway, pages } = await startStage()

before(() => {
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const { status, stderr } = spawnSync('npm', args, { cwd: FOLDER, encoding: 'utf8' })
  assert.equal(status, 0, `npm ci in test/wrappers failed: ${stderr}`)
})

afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
})

interface Wrapper {
  readonly name: string
  readonly app: string
  readonly field: string
  /** The script in the page, where the wrapper's own address cannot be set. */
  readonly script?: string
}

const WRAPPERS: readonly Wrapper[] = [
  {
    name: '@marsidev/react-turnstile',
    app: 'turnstile-react',
    field: 'cf-turnstile-response',
    script: 'id="cf-turnstile-script" src="/compat/turnstile.js?render=explicit"',
  },
  {
    name: 'vue-turnstile',
    app: 'turnstile-vue',
    field: 'cf-turnstile-response',
    script: 'src="/compat/turnstile.js?render=explicit"',
  },
  { name: '@hcaptcha/react-hcaptcha', app: 'hcaptcha-react', field: 'h-captcha-response' },
  { name: '@hcaptcha/vue3-hcaptcha', app: 'hcaptcha-vue', field: 'h-captcha-response' },
  {
    name: 'react-google-recaptcha',
    app: 'recaptcha-react',
    field: 'g-recaptcha-response',
    script: 'src="/compat/recaptcha.js?render=explicit"',
  },
  { name: 'React', app: 'element-react', field: 'powgate-token', script: 'src="/widget.js"' },
  { name: 'Vue', app: 'element-vue', field: 'powgate-token', script: 'src="/widget.js"' },
]

async function bundled(app: string): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: FOLDER,
    entryPoints: [`apps/${app}.js`],
    bundle: true,
    write: false,
    format: 'iife',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'silent',
  })
  return outputFiles[0]!.text
}

/** The token of the wrapper's call with that number. */
async function passed(page: Page, count: number): Promise<string> {
  const calls = () =>
    page.evaluate("window.calls.filter(([name]) => name === 'passed').map(([, token]) => token)")
  return eventually(30_000, `${count} tokens`, async () => ((await calls()) as string[])[count - 1])
}

for (const { name, app, field, script } of WRAPPERS)
  test(`${name}: token, reset, another token, a form with it, redeemed once`, async () => {
    const host = gateway.origin()
    pages.add('/app.js', await bundled(app))
    const own = script === undefined ? '' : `<script ${script.replace('src="', `src="${host}`)}></script>`
    pages.add(
      '/form',
      `<!doctype html><html lang="en" data-host="${host}" data-site-key="${site.siteKey}"><head><title>A form</title>
<meta charset="utf-8">${own}</head><body><form action="/received" method="post"><input name="name" value="Ada">
<div id="app"></div><button>Send</button></form><script src="/app.js"></script></body></html>`,
    )
    pages.forms.length = 0
    const { page, notes } = await visit(browser, `${pages.origin()}/form`)
    const first = await passed(page, 1)
    await page.evaluate('resetCaptcha()')
    const second = await passed(page, 2)
    assert.notEqual(second, first)
    await page.click('text=Send')
    const fields = await eventually(15_000, 'the form arrives', () => pages.forms[0]?.fields)
    assert.equal(fields.get(field), second)
    assert.equal(fields.has('powgate-token'), field === 'powgate-token')
    assert.deepEqual(notes.pageErrors, [])
    const redeem = async () => {
      const body = new URLSearchParams({ secret: site.apiKey, response: second })
      const answer = await fetch(`${service.url}/siteverify`, { method: 'POST', body })
      return ((await answer.json()) as { success: boolean }).success
    }
    assert.equal(await redeem(), true)
    assert.equal(await redeem(), false)
    await closePage(page)
  })
