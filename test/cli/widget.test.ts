/** `powgate widget`: the printed tags and policies match the built files, and work in a page. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { WidgetManifest } from '../../src/http/assets.ts'
import { Powgate } from './cli-process.ts'

const SITE_KEY = 'site_0123456789ABCDEFabcdef'
const URL_TEXT = 'https://captcha.example.com'

const manifest: WidgetManifest = JSON.parse(
  readFileSync(new URL('../../dist/widget/manifest.json', import.meta.url), 'utf8'),
)
const { fileName } = manifest.files.find(({ name }) => name === 'widget.js')!

for (const isFromSource of [true, false]) {
  const powgate = new Powgate({}, { isFromSource })

  test(`powgate widget --json, from the ${isFromSource ? 'source' : 'build'}`, async () => {
    assert.deepEqual(await powgate.json('widget --url', `${URL_TEXT}/`, '--site-key', SITE_KEY), {
      url: `${URL_TEXT}/`,
      script: `<script src="${URL_TEXT}/widget.js" async></script>`,
      pinnedScript: `<script src="${URL_TEXT}/widget/${fileName}" integrity="${manifest.integrity}" crossorigin="anonymous" async></script>`,
      element: `<pow-gate site-key="${SITE_KEY}"></pow-gate>`,
      csp: [`script-src ${URL_TEXT}`, `connect-src ${URL_TEXT}`, `frame-src ${URL_TEXT}`],
      ...manifest,
    })
  })
}

test('powgate widget prints the same as text', async () => {
  const powgate = new Powgate({ POWGATE_URL: URL_TEXT, POWGATE_SITE_KEY: SITE_KEY })
  const text = await powgate.text('widget')
  const { script, pinnedScript, element, csp } = await powgate.json('widget')
  for (const line of [script, pinnedScript, element, csp.join('; ')])
    assert.ok(text.includes(`  ${line}\n`), line)
  assert.ok(text.split('\n').length < 20, 'what a page needs, and no list of files')
})

test('powgate widget without flags prints a placeholder and the default address', async () => {
  const { script, element } = await new Powgate({}).json('widget')
  assert.equal(script, '<script src="http://127.0.0.1:8080/widget.js" async></script>')
  assert.equal(element, '<pow-gate site-key="site_..."></pow-gate>')
})

test('an address below a path, with what HTML would take for its own', async () => {
  const powgate = new Powgate({})
  const { script, csp } = await powgate.json('widget --url', `https://a.example:8443/a&b/"c'>/`)
  assert.equal(script, '<script src="https://a.example:8443/a&amp;b/%22c&#39;%3E/widget.js" async></script>')
  assert.equal(csp[0], 'script-src https://a.example:8443')
})

test('a wrong value of a flag is named, with what was expected', async () => {
  const powgate = new Powgate({})
  assert.match(await powgate.problem(2, 'widget --url captcha.example.com'), /^--url: expected http/)
  assert.match(await powgate.problem(2, 'widget --site-key shop'), /^--site-key: expected site_/)
})
