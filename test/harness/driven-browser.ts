/**
 * Firefox and WebKitGTK, driven with the commands of W3C WebDriver. WebKitGTK has a driver program, which takes them over
 * HTTP. Firefox itself takes the same commands over a socket of its own (Marionette), without a driver program.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { eventually } from './eventually.ts'
import { freePort } from './ports.ts'
import { hasEnded, leftovers } from './processes.ts'
import { temporaryDir } from './temporary.ts'

type DrivenEngine = 'firefox' | 'webkit'
export const DRIVEN_ENGINES: readonly DrivenEngine[] = ['firefox', 'webkit']

/** The name of each command in Marionette, and its address in the session of a driver program. */
const COMMANDS = { Navigate: 'url', ExecuteAsyncScript: 'execute/async', PerformActions: 'actions' } as const

type Send = (command: keyof typeof COMMANDS, parameters: object) => Promise<unknown>

const PATIENCE_MS = 120_000
const TIMEOUTS = { script: PATIENCE_MS, pageLoad: PATIENCE_MS }

/** Characters that stand for keys: W3C WebDriver, section 17.4.2. */
export const KEYS = { tab: '\uE004', enter: '\uE007' } as const

export class DrivenBrowser {
  readonly engine: DrivenEngine
  #send!: Send
  #output = ''
  readonly #programs: ChildProcess[] = []
  readonly #home = temporaryDir('browser')

  private constructor(engine: DrivenEngine) {
    this.engine = engine
  }

  static async start(engine: DrivenEngine): Promise<DrivenBrowser> {
    const browser = new DrivenBrowser(engine)
    leftovers.add(browser)
    browser.#send = await (engine === 'firefox' ? browser.#startFirefox() : browser.#startWebKit())
    return browser
  }

  async open(url: string): Promise<void> {
    await this.#send('Navigate', { url })
  }

  /** The value of an expression in the page, or of the promise that it gives; undefined if the page is left before. */
  async evaluate<T = unknown>(expression: string): Promise<T> {
    // The one argument of the script is the browser's callback, which takes the result.
    const resolve = 'value => arguments[0]([value])'
    const reject = 'error => arguments[0]([null, String(error)])'
    const script = `(async () => (${expression}))().then(${resolve}, ${reject})`
    const settled = await this.#send('ExecuteAsyncScript', { script, args: [] })
    const [value, error] = (settled ?? []) as [T, string?]
    if (error !== undefined) throw new Error(`${expression}: ${error}`)
    return value
  }

  async press(key: string): Promise<void> {
    const actions = ['keyDown', 'keyUp'].map(type => ({ type, value: key }))
    await this.#send('PerformActions', { actions: [{ type: 'key', id: 'keyboard', actions }] })
  }

  /** Clicks on the middle of an element. @param element an expression */
  async click(element: string): Promise<void> {
    const { x, y, width, height } = await this.evaluate<Record<'x' | 'y' | 'width' | 'height', number>>(
      `${element}.getBoundingClientRect().toJSON()`,
    )
    const middle = { x: Math.round(x + width / 2), y: Math.round(y + height / 2) }
    const button = ['pointerDown', 'pointerUp'].map(type => ({ type, button: 0 }))
    const actions = [{ type: 'pointerMove', duration: 0, ...middle }, ...button]
    await this.#send('PerformActions', { actions: [{ type: 'pointer', id: 'mouse', actions }] })
  }

  async stop(): Promise<void> {
    if (!leftovers.delete(this)) return
    for (const program of this.#programs.reverse()) {
      if (hasEnded(program)) continue
      process.kill(-program.pid!, 'SIGKILL') // the group: other processes of a browser would still write to its folder
      await once(program, 'exit')
    }
  }

  #run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const { PATH } = process.env
    const program = spawn(command, args, {
      env: { PATH, HOME: this.#home, XDG_RUNTIME_DIR: this.#home, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    for (const stream of [program.stdout, program.stderr])
      stream.on('data', (chunk: Buffer) => (this.#output += chunk))
    this.#programs.push(program)
    return program
  }

  async #startFirefox(): Promise<Send> {
    // Firefox writes the port into its profile when it listens.
    const preference = `user_pref("marionette.port", ${await freePort()});\n`
    writeFileSync(join(this.#home, 'user.js'), preference)
    this.#run('firefox-esr', ['--headless', '--marionette', '--profile', this.#home])
    const file = join(this.#home, 'MarionetteActivePort')
    const port = () => (existsSync(file) && Number(readFileSync(file))) || undefined // it may be empty still
    return marionette(await eventually(PATIENCE_MS, () => `Firefox listens: ${this.#output}`, port))
  }

  async #startWebKit(): Promise<Send> {
    const screen = this.#run('Xvfb', ['-displayfd', '1', '-screen', '0', '1024x768x24', '-nolisten', 'unix'])
    const [display] = await once(screen.stdout, 'data')
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    this.#run('WebKitWebDriver', [`--port=${port}`], { DISPLAY: `:${String(display).trim()}` })
    const isUp = () => fetch(`${url}/status`).catch(() => undefined)
    await eventually(PATIENCE_MS, () => `WebKitWebDriver listens: ${this.#output}`, isUp)
    return webDriver(url)
  }
}

/** The driver program starts the browser that it comes with. */
async function webDriver(url: string): Promise<Send> {
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${url}/session${path}`, { method: 'POST', body: JSON.stringify(body) })
    const { value } = JSON.parse(await answer.text())
    if (!answer.ok) throw new Error(`${path}: ${JSON.stringify(value)}`)
    return value
  }
  const { sessionId } = await post('', { capabilities: { alwaysMatch: { timeouts: TIMEOUTS } } })
  return (command, parameters) => post(`/${sessionId}/${COMMANDS[command]}`, parameters)
}

/** Sends one command at a time: [0, id, command, parameters]. The answer is [1, id, error, result]. */
async function marionette(port: number): Promise<Send> {
  const socket = connect(port, '127.0.0.1')
  const packets = packetsOf(socket)
  await packets.next() // a greeting
  const send = async (command: string, parameters: object) => {
    const json = JSON.stringify([0, 1, `WebDriver:${command}`, parameters])
    socket.write(`${Buffer.byteLength(json)}:${json}`)
    const [, , error, result] = (await packets.next()).value ?? [1, 1, 'Firefox has ended']
    if (error !== null) throw new Error(`${command}: ${JSON.stringify(error)}`)
    return result?.value
  }
  await send('NewSession', { timeouts: TIMEOUTS })
  return send
}

/** Each packet is the length of its JSON in bytes, a colon, and the JSON. */
async function* packetsOf(socket: Socket) {
  let received = Buffer.alloc(0)
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk])
    for (let colon = received.indexOf(':'); colon > 0; colon = received.indexOf(':')) {
      const end = colon + 1 + Number(received.subarray(0, colon).toString())
      if (received.length < end) break
      yield JSON.parse(received.subarray(colon + 1, end).toString())
      received = received.subarray(end)
    }
  }
}
