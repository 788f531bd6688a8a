/**
 * The tutorials, done as they say: the commands run, the files are written, and then a person and two bots send the form. Only
 * what would be downloaded is linked from here instead.
 */

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { openBrowser, openPage } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { installInto, NEXT_CONFIG } from '../harness/packages.ts'
import { freePort } from '../harness/ports.ts'
import { TestService, UNLIMITED } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const run = promisify(execFile)
const ROOT = new URL('../..', import.meta.url).pathname
const START_MS = 120_000

const PAGES = ['tutorial', ...['express', 'nextjs', 'php', 'python', 'go'].map(name => `tutorials/${name}`)]

/** Has `powgate`, the tree that commands run in, `node_modules`, which all shops share, and a shop for each tutorial. */
const home = temporaryDir('tutorials')

symlinkSync(ROOT, join(home, 'powgate'))
installInto(home, join(ROOT, 'client'), ['express', 'next', 'react', 'react-dom'])
installInto(home, join(ROOT, 'client/page'))
const service = await TestService.start('embedded', UNLIMITED)

/** The lines of all blocks of shell commands, and the files: each has a line with its name, and then a block with its text. */
function readTutorial(page: string) {
  const text = readFileSync(join(ROOT, 'docs', `${page}.md`), 'utf8')
  const commands = [...text.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block]) =>
    block!.trim().split('\n'),
  )
  const files = [...text.matchAll(/^`([\w./]+)`:\n\n```\w+\n(.*?)^```/gms)]
  return { commands, files: files.map(([, name, content]) => ({ name: name!, content: content! })) }
}

const only = (commands: readonly string[], part: string): string => {
  const found = commands.filter(command => command.includes(part))
  assert.equal(found.length, 1, `one command has "${part}"`)
  return found[0]!
}

/** Follows a tutorial to its running server; `terminal` returns what that has written so far. */
async function follow(page: string): Promise<{ url: string; terminal: () => string }> {
  const { commands, files } = readTutorial(page)
  const port = await freePort()
  /** With the ports of this run, and with more patience. */
  const adapted = (text: string) =>
    text
      .replaceAll('3000', `${port}`)
      .replaceAll(':8080', `:${service.port}`)
      .replace('timeout(2000)', 'timeout(60000)')
  const create = adapted(only(commands, 'site create'))
  const env = {
    ...process.env,
    POWGATE_TEST_PORTS: undefined, // powgate's commands would refuse it as a setting that is not theirs
    POWGATE_DATA_DIR: service.dataDir,
    NEXT_TELEMETRY_DISABLED: '1',
  }
  const { stdout } = await run('sh', ['-c', create], { cwd: join(home, 'powgate'), env })
  const [, apiKey] = /(sk_\S+)/.exec(stdout)!
  const [, siteKey] = /(site_\w+)/.exec(stdout)!
  const filled = (text: string) =>
    adapted(text).replaceAll('site_...', siteKey!).replaceAll('sk_...', apiKey!)

  const shop = join(home, page.replace('/', '-'))
  mkdirSync(shop)
  symlinkSync(join(home, 'node_modules'), join(shop, 'node_modules'))
  for (const { name, content } of files) {
    mkdirSync(dirname(join(shop, name)), { recursive: true })
    writeFileSync(join(shop, name), filled(content))
  }
  if (page.endsWith('nextjs')) writeFileSync(join(shop, 'next.config.mjs'), NEXT_CONFIG)
  for (const command of commands.filter(command => !DONE_HERE.test(command)))
    await run('sh', ['-c', installed(command)], { cwd: shop, env })

  const start = installed(filled(only(commands, 'POWGATE_API_KEY=')))
  const server = spawn('sh', ['-c', start], { cwd: shop, env, detached: true })
  let written = ''
  for (const stream of [server.stdout, server.stderr])
    stream.on('data', (chunk: Buffer) => (written += chunk))
  after(async () => {
    process.kill(-server.pid!, 'SIGKILL')
    await once(server, 'exit')
  })
  const url = `http://127.0.0.1:${port}/`
  await eventually(START_MS, `${url} answers`, () => fetch(url).catch(() => undefined))
  return { url, terminal: () => written }
}

/** Commands that this test does in its own way: it has the clone, the site, a shop and the downloads, starts the server, and is the bot. */
const DONE_HERE =
  /^(git clone|npm ci|npm run -s powgate|mkdir|npm init -y$|npm install|python3 -m venv|POWGATE_\w+=|curl)/

/** The command with programs of this machine in place of those that the tutorial installs. */
const installed = (command: string): string =>
  command
    .replace('npx next', 'node node_modules/next/dist/bin/next')
    .replace('.venv/bin/flask', '/usr/bin/python3 -m flask')

for (const page of PAGES) {
  test(`docs/${page}.md: a person's form is accepted once, and a bot's is refused`, async () => {
    const { url, terminal } = await follow(page)
    const { page: person } = await openPage(await openBrowser(), url)
    person.setDefaultTimeout(START_MS)
    const sent = person.waitForRequest(
      request => request.method() === 'POST' && request.url().startsWith(url),
    )
    await person.getByLabel('Message').fill('Hello')
    await person.getByRole('button', { name: 'Send' }).click()
    await person.getByText('Thank you!').waitFor()

    const form = await sent
    const resend = (body: string, type = 'application/x-www-form-urlencoded') =>
      fetch(form.url(), { method: 'POST', headers: { 'Content-Type': type }, body })
    assert.match(form.postData()!, /^message=Hello&powgate-token=\d+/)
    const again = await resend(form.postData()!)
    assert.equal(again.status, 403, 'the same token again')
    // The first tutorial's page tells visitors no code.
    if (page !== 'tutorial') assert.match(await again.text(), /a person \(token-used\)/)
    await eventually(START_MS, 'the terminal has the code', () => /refused.*token-used/.test(terminal()))
    assert.equal((await resend('message=spam')).status, 403, 'without a token')
    const twice = 'message=a&message=b&message[]=c&powgate-token=x&powgate-token=y&powgate-token[]=z'
    assert.equal((await resend(twice)).status, 403, 'fields that come twice')
    assert.equal((await resend('{"message":"spam"}', 'application/json')).status, 403, 'JSON')

    const bot = await (await openBrowser({ isAutomated: true })).newPage()
    bot.setDefaultTimeout(START_MS)
    await bot.goto(url)
    await bot.getByLabel('Message').fill('spam')
    await bot.getByRole('button', { name: 'Send' }).click()
    await bot.getByText('Verification failed').first().waitFor()
  })
}
