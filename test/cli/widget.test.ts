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

test('powgate widget prints tags and a policy, as JSON and as text', async () => {
  const powgate = new Powgate({ POWGATE_URL: `${URL_TEXT}/`, POWGATE_SITE_KEY: SITE_KEY })
  const { script, pinnedScript, element, csp, ...rest } = await powgate.json('widget')
  assert.deepEqual(rest, { url: `${URL_TEXT}/`, ...manifest })
  assert.equal(script, `<script src="${URL_TEXT}/widget.js" async></script>`)
  const pinned = `src="${URL_TEXT}/widget/${fileName}" integrity="${manifest.integrity}" crossorigin="anonymous"`
  assert.equal(pinnedScript, `<script ${pinned} async></script>`)
  assert.equal(element, `<pow-gate site-key="${SITE_KEY}"></pow-gate>`)
  assert.deepEqual(csp, [`script-src ${URL_TEXT}`, `connect-src ${URL_TEXT}`, `frame-src ${URL_TEXT}`])
  const text = await powgate.text('widget')
  for (const line of [script, pinnedScript, element, csp.join('; ')])
    assert.ok(text.includes(`  ${line}\n`), line)
  assert.match(text, /copy of default-src/, 'a new directive takes its place')
  assert.match(text, /^--json lists each file too\.$/m)
  assert.ok(text.split('\n').length < 20, 'what a page needs, and no list of files')
})

test('the default address, and one below a path, with what HTML would take for its own', async () => {
  const powgate = new Powgate({})
  const shown = await powgate.text('widget')
  assert.match(shown, /src="http:\/\/127\.0\.0\.1:8080\/widget\.js"[\s\S]+site-key="site_\.\.\."/)
  const { script, csp } = await powgate.json('widget --url', `https://a.example:8443/a&b/"c'>/`)
  assert.equal(script, '<script src="https://a.example:8443/a&amp;b/%22c&#39;%3E/widget.js" async></script>')
  assert.equal(csp[0], 'script-src https://a.example:8443')
})
