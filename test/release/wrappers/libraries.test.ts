/** The widget beside libraries: those that read forms by field names, old zone.js, and packages with a vendor's address in their code. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import { Client } from '../../harness/client.ts'
import { eventually } from '../../harness/eventually.ts'
import { installNpmPackages } from '../../harness/packages.ts'
import { UNLIMITED } from '../../harness/service.ts'
import { GATE, startStage, untilState, visit } from '../../harness/widget.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
installNpmPackages(FOLDER)
const { browser, service, site, gateway, pages } = await startStage(UNLIMITED)

const redeem = async (response: string) =>
  (await new Client(service.url).siteverify({ secret: site.apiKey, response })).json

interface Library {
  readonly files: readonly string[]
  readonly form?: string
  /** Runs when the page has loaded. */
  readonly code?: string
}

const JQUERY = 'jquery/dist/jquery.js'
const LIBRARIES: Readonly<Record<string, Library>> = {
  'jQuery, serialize()': {
    files: [JQUERY],
    code: `$('form').on('submit', event => { event.preventDefault(); $.post('/received', $(event.target).serialize()) })`,
  },
  'jquery.form': { files: [JQUERY, 'jquery-form/dist/jquery.form.min.js'], code: `$('form').ajaxForm()` },
  'rails-ujs': { files: ['@rails/ujs/app/assets/javascripts/rails-ujs.js'], form: 'data-remote="true"' },
  'htmx 1': { files: ['htmx.org/dist/htmx.js'], form: 'hx-post="/received" hx-swap="none"' },
  Unpoly: { files: ['unpoly/unpoly.js'], form: 'up-submit up-target="h1"' },
  'zone.js 0.14.2': { files: ['zone.js/bundles/zone.umd.js'] },
}

async function open({ files, form = '', code = '' }: Library, attributes: string): Promise<Page> {
  pages.forms.length = 0
  const scripts = files.map((file, index) => {
    pages.add(`/${index}.js`, readFileSync(`${FOLDER}node_modules/${file}`))
    return `<script src="/${index}.js"></script>`
  })
  pages.add(
    '/form',
    `<!doctype html><html lang="en"><head><title>A form</title><meta charset="utf-8">${scripts.join('')}
<script src="${gateway.origin()}/widget.js"></script></head><body><h1>A form</h1><form action="/received" method="post" ${form}>
<input name="name" value="Ada"><pow-gate site-key="${site.siteKey}" ${attributes}></pow-gate><button>Send</button></form>
<script>${code}</script></body></html>`,
  )
  return (await visit(browser, `${pages.origin()}/form`)).page
}

for (const [name, library] of Object.entries(LIBRARIES))
  for (const attributes of ['', 'auto="submit"', 'name="answer"'])
    test(`${name}, ${attributes || 'as usual'}: the backend gets the token, once`, async () => {
      const page = await open(library, attributes)
      if (attributes !== 'auto="submit"') {
        await page.locator('input[name=name]').focus()
        await untilState(page, 'verified')
      }
      await page.click('text=Send')
      const fields = await eventually(60_000, 'the form arrives', () => pages.forms[0])
      const tokens = fields.getAll(attributes.startsWith('name') ? 'answer' : 'powgate-token')
      assert.equal(tokens.length, 1, String(fields))
      assert.equal((await redeem(tokens[0]!)).success, true)
    })

test('zone.js 0.14.2: an element that is removed takes none of the page’s listeners with it', async () => {
  const page = await open(LIBRARIES['zone.js 0.14.2']!, 'auto="off"')
  const heard = await page.evaluate(`(() => {
    let heard = 0
    for (const type of ['click', 'submit', 'focusin', 'visibilitychange'])
      document.addEventListener(type, () => heard++, true)
    const gate = ${GATE}
    gate.remove()
    document.forms[0].append(gate)
    gate.remove()
    for (const type of ['click', 'submit', 'focusin', 'visibilitychange']) document.dispatchEvent(new CustomEvent(type))
    return heard
  })()`)
  assert.equal(heard, 4)
})

/** Opens a page whose app was written for a vendor, with only redirect.js before it. `foreign`: requests that left for other hosts. */
async function openApp(app: string) {
  const { outputFiles } = await build({
    absWorkingDir: FOLDER,
    entryPoints: [`apps/${app}.js`],
    bundle: true,
    write: false,
    format: 'iife',
    define: { 'process.env.NODE_ENV': '"development"' }, // StrictMode mounts twice
    logLevel: 'silent',
  })
  pages.add('/app.js', outputFiles[0]!.text)
  pages.add(
    '/form',
    `<!doctype html><html lang="en" data-site-key="${site.siteKey}"><head><title>A form</title><meta charset="utf-8">
<script src="${gateway.origin()}/compat/redirect.js"></script></head><body><div id="app"></div><script src="/app.js"></script></body></html>`,
  )
  const foreign: string[] = []
  const prepare = async (page: Page) => {
    page.on('request', request => /^http:\/\/127/.test(request.url()) || foreign.push(request.url()))
  }
  return { page: (await visit(browser, `${pages.origin()}/form`, { prepare })).page, foreign }
}

async function executed(page: Page, count: number): Promise<string> {
  await page.waitForFunction('window.execute')
  await page.evaluate('execute()')
  const calls = () => page.evaluate(`calls.map(call => call.join(' '))`) as Promise<string[]>
  return eventually(60_000, 'a token', async () => (await calls())[count - 1])
}

test('react-google-recaptcha-v3 in StrictMode, unmounted and mounted again: a token each time, nothing for the vendor', async () => {
  const { page, foreign } = await openApp('recaptcha3-react')
  assert.match(await executed(page, 1), /^passed \d+\|/)
  await page.evaluate('show(false); window.execute = undefined')
  await page.waitForTimeout(200)
  await page.evaluate('show(true)')
  assert.match(await executed(page, 2), /^passed \d+\|/)
  assert.deepEqual(foreign, [])
})

test('vue-recaptcha-v3, rendered without a container: its action is in the token', async () => {
  const { page, foreign } = await openApp('recaptcha3-vue')
  const { success, action } = await redeem((await executed(page, 1)).replace('passed ', ''))
  assert.deepEqual([success, action], [true, 'login'])
  assert.deepEqual(foreign, [])
})
