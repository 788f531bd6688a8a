/** MediaWiki with ConfirmEdit, as Debian packages them: only the settings of docs/migrate/mediawiki.md name powgate. */

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { Client } from '../../harness/client.ts'
import { eventually } from '../../harness/eventually.ts'
import { type Answer, call, freshAddress } from '../../harness/http.ts'
import { freePort } from '../../harness/ports.ts'
import { endProcess, leftovers } from '../../harness/processes.ts'
import { EASY, TestService, UNLIMITED } from '../../harness/service.ts'
import { temporaryDir } from '../../harness/temporary.ts'

const CODE = '/usr/share/mediawiki'
const PAGE = new URL('../../../docs/migrate/mediawiki.md', import.meta.url)
const SCRIPTS = 'https://captcha.example.com'
const START_MS = 60_000
const PASSWORD = 'a password of the tests'

const folder = temporaryDir('mediawiki')
const service = await TestService.start('embedded', UNLIMITED)
const site = await service.createSite({ difficulty: EASY })
mkdirSync(join(folder, 'data'))
const data = { dbtype: 'sqlite', dbpath: join(folder, 'data') }
const options = { ...data, confpath: folder, pass: PASSWORD, scriptpath: '' }
const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
const args = [join(CODE, 'maintenance/install.php'), ...flags, 'Wiki', 'Admin']
const env = { ...process.env, MW_CONFIG_FILE: join(folder, 'none.php') } // whatever wiki this machine has
execFileSync('php', args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
appendFileSync(join(folder, 'LocalSettings.php'), localSettings())

/** The page's settings with this service's address and keys, for both modes; and what every wiki chooses for itself. */
function localSettings(): string {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/```php\n([\s\S]*?)```/g)].map(([, text]) => text!)
  assert.equal(blocks.length, 2)
  const [hcaptcha, recaptcha] = blocks.map(text =>
    text
      .replace('site_...', site.siteKey)
      .replace('sk_...', site.apiKey)
      .replace('http://powgate:8080', service.url),
  )
  const [loading, ...rest] = hcaptcha!.split('\n\n') // the lines of this mode, and those of both modes
  return `
$wgServer = "http://{$_SERVER['HTTP_HOST']}";
$wgCacheDirectory = __DIR__;
$wgCaptchaTriggers['edit'] = true;
if ( getenv( 'MODE' ) === 'hCaptcha' ) {
${loading}
} else {
${recaptcha}
}
${rest.join('\n\n')}`
}

async function startWiki(mode: string): Promise<string> {
  const port = await freePort()
  const { PATH } = process.env
  const env = { PATH, MW_CONFIG_FILE: join(folder, 'LocalSettings.php'), MODE: mode }
  const args = ['-d', 'opcache.enable_cli=1', '-S', `127.0.0.1:${port}`, '-t', CODE]
  const child = spawn('php', args, { env, stdio: 'ignore' })
  leftovers.add({ stop: () => endProcess(child) })
  const url = `http://127.0.0.1:${port}/index.php`
  await eventually(START_MS, 'the wiki shows its main page', async () => {
    const answer = await call(`${url}?title=Main_Page`, { isForeign: true }).catch(() => undefined)
    return answer?.status === 200
  })
  return url
}

const POST_FORM = /<form\b[^>]*\bmethod="post"[^>]*>[\s\S]*?<\/form>/
const ENTITIES: Record<string, string> = { amp: '&', quot: '"', lt: '<', gt: '>', '#039': "'", '#43': '+' }

function attributeOf(tag: string, name: string): string {
  const value = new RegExp(`\\s${name}=(?:"([^"]*)"|'([^']*)')`).exec(tag)
  const text = value?.[1] ?? value?.[2] ?? ''
  return text.replace(/&([#\w]+);/g, (all, entity) => ENTITIES[entity] ?? all)
}

/** Somebody with a browser: keeps cookies, and sends forms with their hidden fields. */
class Visitor {
  readonly from = freshAddress()
  readonly #wiki: string
  readonly #cookies = new Map<string, string>()

  constructor(wiki: string) {
    this.#wiki = wiki
  }

  token(): Promise<string> {
    return new Client(service.url).token(site.siteKey, { from: this.from })
  }

  async open(path: string, fields?: Record<string, string>): Promise<Answer> {
    const Cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const type = fields === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }
    const answer = await call(new URL(path, this.#wiki).href, {
      method: fields === undefined ? 'GET' : 'POST',
      headers: { Cookie, ...type },
      ...(fields === undefined ? {} : { body: `${new URLSearchParams(fields)}` }),
      from: this.from,
      isForeign: true,
    })
    for (const cookie of answer.headers['set-cookie'] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!
      this.#cookies.set(name!, value!)
    }
    return answer
  }

  /** Opens a page, fills in its form and sends it. */
  async send(path: string, fields: Record<string, string>): Promise<Answer> {
    const { text } = await this.open(path)
    const form = POST_FORM.exec(text)?.[0] ?? ''
    const hidden = (form.match(/<input\b[^>]*>/g) ?? []).filter(tag => attributeOf(tag, 'type') === 'hidden')
    const given = Object.fromEntries(hidden.map(tag => [attributeOf(tag, 'name'), attributeOf(tag, 'value')]))
    return this.open(attributeOf(form, 'action'), { ...given, ...fields })
  }

  async hasAccount(name: string): Promise<boolean> {
    const { json } = await this.open(`/api.php?action=query&format=json&list=users&ususers=${name}`)
    return 'userid' in json.query.users[0]
  }

  async textOf(title: string): Promise<string> {
    return (await this.open(`/index.php?title=${title}&action=raw`)).text
  }
}

const MODES = [
  ['hCaptcha', 'h-captcha-response', 'h-captcha', '/1/api.js'],
  ['ReCaptchaNoCaptcha', 'g-recaptcha-response', 'g-recaptcha', '/recaptcha/api.js'],
] as const

for (const [mode, field, element, script] of MODES)
  describe(`ConfirmEdit/${mode}`, () => {
    let wiki: string
    before(async () => {
      wiki = await startWiki(mode)
    })
    const ACCOUNT = '/index.php?title=Special:CreateAccount'
    const EDIT = '/index.php?title=Sandbox&action=edit'
    const signUp = (visitor: Visitor, wpName: string, token: string) =>
      visitor.send(ACCOUNT, { wpName, wpPassword: PASSWORD, retype: PASSWORD, [field]: token })
    const edit = (visitor: Visitor, wpTextbox1: string, token: string) =>
      visitor.send(EDIT, { wpTextbox1, wpSave: 'Save', [field]: token })

    test("pages with a form have the site key and load powgate's script", async () => {
      for (const path of [ACCOUNT, EDIT]) {
        const { text } = await new Visitor(wiki).open(path)
        assert.match(text, new RegExp(`class="${element}" data-sitekey="${site.siteKey}"`), path)
        const scripts = Array.from(text.matchAll(/<script src="(https:[^"?]+)/g), ([, address]) => address)
        assert.deepEqual(scripts, [SCRIPTS + script])
        const answer = await call(service.url + script)
        assert.equal(answer.status, 200)
      }
    })

    test('an account is created with a token, and none without a good one', async () => {
      const visitor = new Visitor(wiki)
      await signUp(visitor, `Ada ${mode}`, await visitor.token())
      assert.ok(await visitor.hasAccount(`Ada ${mode}`))
      // Another visitor, who is not signed in as Ada.
      for (const wrong of ['x', '']) await signUp(new Visitor(wiki), `Bob ${mode}`, wrong)
      assert.ok(!(await visitor.hasAccount(`Bob ${mode}`)))
    })

    test("a page is edited without an account, once for each token, and not with another visitor's", async () => {
      const visitor = new Visitor(wiki)
      const token = await visitor.token()
      await edit(visitor, `first of ${mode}`, token)
      assert.equal(await visitor.textOf('Sandbox'), `first of ${mode}`)
      for (const other of [token, await new Visitor(wiki).token(), 'x', ''])
        await edit(visitor, `second of ${mode}`, other)
      assert.equal(await visitor.textOf('Sandbox'), `first of ${mode}`)
    })
  })
