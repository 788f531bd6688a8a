/** The element's attributes, checked. */

import { unclobbered } from './dom.ts'
import { PowGateError } from './service.ts'
import type { Mode } from './solver/job.ts'

/** When a verification starts. `focus`, also in place of unknown words, is a focus, a pointer or a change in the form or on the element. */
export type Auto = 'load' | 'focus' | 'submit' | 'off'

const SITE_KEY = /^site_[0-9A-Za-z]{22}$/
const MODES: readonly string[] = ['worker', 'frame', 'blob', 'page'] satisfies Mode[]

/** null if the page loads this script as a module. */
const script = unclobbered(document).currentScript as HTMLScriptElement | null

/** True if the page pins this script by `integrity`. Then other scripts that get the page's rights must fit ASSET_PINS (modes.ts), but for a worker's own file. */
export const isPinned = !!script?.integrity
/** The nonce of the page's policy, for scripts that we add. */
export const scriptNonce = script?.nonce

/**
 * The service that this script came from, by a stack trace, which markup cannot change: modules have no script element, and an
 * injected `<base>` changes what `src` says.
 */
const codeEndpoint = serviceIn(`${new Error().stack}`)
/** Elements without the attribute `endpoint`, or with an empty one, use this one. No code of it gets the page's rights, so `src` may name it. */
const defaultEndpoint = codeEndpoint ?? serviceIn(script?.src)

/** The part of an address of widget.js that names the service. */
function serviceIn(text = ''): string | undefined {
  return /(https?:[^\s?#]*?)\/+(widget\/)?widget(\.[\da-f]+)?\.js([?#:]|$)/.exec(text)?.[1]
}

export function autoOf(element: Element): Auto {
  const auto = element.getAttribute('auto')
  return auto === 'load' || auto === 'submit' || auto === 'off' ? auto : 'focus'
}

/** The attributes as settings of a verification. @throws PowGateError that tells the integrator what is wrong */
export function settingsOf(element: Element) {
  const siteKey = element.getAttribute('site-key')?.trim()
  if (!siteKey) {
    const wrong = ['sitekey', 'data-sitekey', 'data-site-key'].find(name => element.hasAttribute(name))
    const hint = wrong ? `: write site-key in place of ${wrong}` : ''
    throw setupError('site-key-missing', `the attribute site-key is missing${hint}`)
  }
  if (!SITE_KEY.test(siteKey)) {
    // Only the start is repeated, because the rest may be a secret.
    const start = siteKey.slice(0, 6)
    const what = siteKey.startsWith('sk_')
      ? 'this is an API key, a secret that every visitor can read: revoke it, and use the key that starts with site_'
      : `expected site_ and 22 letters or digits, not "${start}..."`
    throw setupError('site-key-malformed', `site-key: ${what}`)
  }
  const endpoint = endpointOf(element)
  const mode = element.getAttribute('solver')
  if (mode !== null && !MODES.includes(mode)) {
    throw setupError('solver-unknown', `solver: expected one of ${MODES.join(', ')}, not "${mode}"`)
  }
  return {
    siteKey,
    endpoint,
    /** The folder at `endpoint`, ending in a slash: for the frame, kernels and texts, which run no code with the page's rights. */
    assets: assetsOf(endpoint),
    /** The folder that this script came from, for code with the page's rights. If unknown, only `frame` and `worker-src` work. */
    codeAssets: codeEndpoint && assetsOf(codeEndpoint),
    workerSrc: element.getAttribute('worker-src') ?? undefined,
    /** Texts of the page that the token holds. */
    bound: {
      action: element.getAttribute('action') ?? undefined,
      cdata: element.getAttribute('cdata') ?? undefined,
    },
    /** The only mode to try before `page`, the last resort. */
    mode: (mode ?? undefined) as Mode | undefined,
    /** The most threads. 0 or no number sets no bound; modes.ts takes a negative one for 1. */
    threads: Math.floor(Number(element.getAttribute('threads'))) || Number.POSITIVE_INFINITY,
    // Words but '', `on` and `software` forbid the GPU (modes.ts). A page that limits threads spares devices, so its default is `off`.
    gpu: element.getAttribute('gpu') ?? (element.hasAttribute('threads') ? 'off' : ''),
  }
}

export type Settings = ReturnType<typeof settingsOf>

const assetsOf = (endpoint: string) => `${endpoint}/widget/`

/** The folder of the assets; undefined if the endpoint is wrong. */
export function assetsOfElement(element: Element): string | undefined {
  try {
    return assetsOf(endpointOf(element))
  } catch {
    return undefined
  }
}

/** Hosts without a scheme, which browsers would take for a path or a scheme: `captcha.example.com`, `localhost:8080`. */
const HOST = /^([\w-]+\.)+[a-z]{2,}(:\d+)?(\/|$)|^[\w.-]+:\d/i

function endpointOf(element: Element): string {
  const text = (element.getAttribute('endpoint') || defaultEndpoint)?.trim()
  if (!text)
    throw setupError('endpoint-missing', 'the attribute endpoint is missing, the address of the service')
  try {
    const { protocol, href } = new URL(text, unclobbered(document).baseURI)
    if (!HOST.test(text) && /^https?:$/.test(protocol)) return href.replace(/[?#].*/, '').replace(/\/+$/, '')
  } catch {
    // The error below says so.
  }
  const hint = HOST.test(text) ? `: write https://${text}` : ''
  throw setupError('endpoint-malformed', `endpoint: expected an http or https address, not "${text}"${hint}`)
}

const setupError = (code: string, message: string) => new PowGateError(code, 'setup', message)
