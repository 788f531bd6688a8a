/**
 * The package client/page as npm packs it: what it depends on, its types, and its React component on pages of Next.js. The same
 * production build of Next.js has the recipe for a route; the recipe for Playwright runs against a page of the tests.
 */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { frameworkPath, installInto, NEXT_CONFIG, typeErrors } from '../harness/packages.ts'
import { freePort } from '../harness/ports.ts'
import { UNLIMITED } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { assertQuiet, formPage, posted, scriptTag, startStage, visit } from '../harness/widget.ts'
import { copyRecipe, recipeTests, sendForm, startServer } from './recipe-tests.ts'

const run = promisify(execFile)
const ROOT = new URL('../../', import.meta.url).pathname
const NEXT = frameworkPath('next/dist/bin/next')
// All that is awaited stands before the first test: node:test would take the file for ended while it waits later.
const stage = await startStage({ ...UNLIMITED, POWGATE_TEST_KEYS: 'on' })
const { browser, site, gateway, pages } = stage

const project = temporaryDir('page')
const FRAMEWORKS = ['next', 'react', 'react-dom', '@types', 'csstype', '@playwright']
const packed = installInto(project, join(ROOT, 'client/page'), FRAMEWORKS)
const client = installInto(project, join(ROOT, 'client'))
writeFileSync(join(project, 'package.json'), '{"type":"module"}')

/**
 * A page with a form, which shows the token that onVerified gets. A press of its button proves that React runs, and adds a second
 * component. @param firstLine may make it a client component @param attributes more attributes of the first component
 */
const contactPage = (firstLine: string, attributes = '') => `${firstLine}
import { useState } from 'react'
import { PowGate } from 'powgate-page/react'
export default function Contact() {
  const [token, setToken] = useState('')
  const [presses, setPresses] = useState(0)
  return <><form action="${pages.origin()}/received" method="post">
    <input name="name" defaultValue="" />
    <PowGate siteKey="${site.siteKey}" endpoint="${gateway.origin()}" onVerified={({ token }) => setToken(token)} ${attributes} />
    <output>{token}</output>
    <button type="button" onClick={() => setPresses(presses + 1)}>Hydrated {presses}</button>
    <button>Send</button>
  </form>{presses > 0 && <PowGate siteKey="${site.siteKey}" endpoint="${gateway.origin()}" disabled invisible />}</>
}
`
const LAYOUT = `export default function Layout({ children }) {
  return <html lang="en"><head><script async src="${gateway.origin()}/widget.js" /></head><body>{children}</body></html>
}
`

/** Next.js has two routers: app/ has a layout, here with the widget's script; pages/ has none, so the component loads the script. */
const shop = join(project, 'shop')
for (const folder of ['app/new', 'app/contact', 'pages']) mkdirSync(join(shop, folder), { recursive: true })
writeFileSync(join(shop, 'app/layout.jsx'), LAYOUT)
writeFileSync(join(shop, 'app/new/page.jsx'), contactPage("'use client'"))
writeFileSync(join(shop, 'pages/old.jsx'), contactPage('', 'auto="focus"'))
copyRecipe(client, 'next-route.js', join(shop, 'app/contact/route.js'))
writeFileSync(join(shop, 'next.config.js'), NEXT_CONFIG)
const { PATH, HOME } = process.env
const env = { PATH, HOME, NEXT_TELEMETRY_DISABLED: '1' }
// The build gets no key, because shops are built where the key is not known.
await run(process.execPath, [NEXT, 'build', 'shop'], { cwd: project, env })
const port = String(await freePort())
const POWGATE_URL = `${gateway.origin()}//` // the recipe drops slashes at the end
const keyed = { ...env, POWGATE_URL, POWGATE_API_KEY: site.apiKey }
const origin = `http://127.0.0.1:${port}`
const args = [NEXT, 'start', 'shop', '-H', '127.0.0.1', '-p', port]
await startServer(origin, args, { cwd: project, env: keyed })

test('publint finds nothing, and the package depends on nothing that has to be installed with it', async () => {
  const publintPackage: string = 'publint' // no literal, which tsc would look for among the packages of the root
  const { publint } = await import(publintPackage)
  const { messages } = await publint({ pkgDir: packed, strict: true })
  assert.deepEqual(messages, [])
  const manifest = readFileSync(join(packed, 'package.json'), 'utf8')
  const { dependencies, peerDependenciesMeta } = JSON.parse(manifest)
  assert.equal(dependencies, undefined)
  for (const { optional } of Object.values<{ optional: boolean }>(peerDependenciesMeta))
    assert.equal(optional, true)
})

/** Lines that must compile, and lines that must not. */
const TYPES = `import { useRef } from 'react'
import { PowGate, type PowGateElement } from 'powgate-page/react'
export function Good() {
  const gate = useRef<PowGateElement>(null)
  const own = useRef<PowGateElement>(null)
  void gate.current?.execute()
  return <form>
    <PowGate ref={gate} siteKey="site_" endpoint="https://x.example" auto="focus" textIdle="Hello" className="a" onVerified={({ token }) => token.length} />
    <pow-gate ref={own} site-key="site_" form="contact" id="a" invisible onverified={event => event.detail.token} />
  </form>
}
// @ts-expect-error the site key is missing
export const noKey = <PowGate endpoint="https://x.example" />
// @ts-expect-error no such moment
export const wrong = <PowGate siteKey="site_" endpoint="https://x.example" auto="never" />
`

test('types: the component, and the element in JSX with ref, form and events', () => {
  writeFileSync(join(project, 'types.tsx'), TYPES)
  assert.equal(typeErrors(project, 'types.tsx', '--jsx react-jsx --types react'), '')
})

for (const path of ['/new', '/old'])
  test(`Next.js, ${path}: hydrated late, onVerified is called, typed text stays, the form has the token`, async () => {
    pages.forms.length = 0
    const prepare = (page: Page) =>
      page.route('**/_next/static/**', async route => {
        await new Promise(resolve => setTimeout(resolve, 3000))
        await route.continue().catch(() => {}) // the page may be closed by now
      })
    // At /new the widget's script runs before those of Next.js, which are delayed; at /old these load it.
    const { page, notes } = await visit(browser, 'about:blank', { prepare })
    await page.goto(origin + path, { waitUntil: 'commit' })
    await page.fill('input[name=name]', 'Ada')
    await page.locator('pow-gate:state(verified)').waitFor()
    await page.locator('output:not(:empty)').waitFor()
    await page.click('text=Hydrated 0')
    await page.locator('text=Hydrated 1').waitFor()
    await page.locator('pow-gate[disabled][invisible]').waitFor({ state: 'attached' }) // mounted when the element was known
    assert.equal(await page.inputValue('input[name=name]'), 'Ada')
    assertQuiet(notes)
    await page.click('text=Send')
    const fields = await posted(stage)
    assert.equal(fields.get('name'), 'Ada')
    assert.equal(fields.getAll('powgate-token').length, 1)
  })

recipeTests('the recipe for Next.js', (token, ip) => sendForm(`${origin}/contact`, token, ip), stage)

test('the recipe for Playwright: with the test keys, one visitor sends the form and one is refused', async () => {
  const key = 'site-key="site_TestAlwaysPasses000000"'
  pages.add('/contact', formPage(key, { script: scriptTag(gateway) }))
  pages.add('/received', '<!doctype html><html lang="en"><title>Received</title>thank you')
  cpSync(join(ROOT, 'client/recipes/playwright.spec.js'), join(project, 'playwright.spec.js'))
  const launchOptions = { executablePath: '/usr/bin/chromium' }
  // Playwright's own limits are 5 s for a text and 30 s for a test: too little for a busy machine.
  const limits = { timeout: 120_000, expect: { timeout: 60_000 } }
  const config = { use: { launchOptions }, reporter: 'line', ...limits }
  writeFileSync(join(project, 'playwright.config.js'), `export default ${JSON.stringify(config)}`)
  const cli = frameworkPath('@playwright/test/cli.js')
  const tried = { PATH, HOME, PAGE_URL: `${pages.origin()}/contact` }
  const { stdout } = await run(process.execPath, [cli, 'test'], { cwd: project, env: tried })
  assert.match(stdout, /2 passed/)
})
