/** Makes scripts' addresses acceptable to Trusted Types, and loads scripts into the page, which may pin them by `integrity`. */

import { takeOut, timeoutSignal, unclobbered } from './dom.ts'
import { isPinned, scriptNonce } from './settings.ts'
import { FILE_MS_MAX, ModeBlockedError } from './solver/pool.ts'

interface TrustedTypesPolicy {
  createScriptURL(url: string): string
}

let trustedTypesPolicy: TrustedTypesPolicy | undefined

/** Makes a script's address acceptable to pages with Trusted Types. @throws ModeBlockedError if they do not allow our policy */
export function trusted(url: string): string {
  const { trustedTypes } = globalThis as {
    trustedTypes?: { createPolicy(name: string, rules: TrustedTypesPolicy): TrustedTypesPolicy }
  }
  try {
    trustedTypesPolicy ??= trustedTypes?.createPolicy('powgate', { createScriptURL: same => same })
  } catch {
    throw new ModeBlockedError('trusted-types lacks powgate')
  }
  return trustedTypesPolicy === undefined ? url : trustedTypesPolicy.createScriptURL(url)
}

/** Browsers check a module's integrity only when they load it, so its address must be new to the page. */
const MODULE_KEY = `#${Math.random()}`

/** `import` takes no integrity value. If the page pins the build, a script element that has one loads the module before `import`. */
export function loadModule<Module>(address: string, integrity: string): Promise<Module> {
  const url = address + MODULE_KEY
  return new Promise((resolve, reject) => {
    // The address is added because some browsers' errors lack it.
    const onerror = (why: unknown) =>
      reject(new Error(`${address}: ${why instanceof Error ? why : 'no script'}`))
    const onload = () => import(url).then(resolve, onerror)
    timeoutSignal(FILE_MS_MAX).addEventListener('abort', onerror)
    if (isPinned) {
      // WebKit ignores the integrity of `modulepreload` (WebKitGTK 2.50).
      const attributes = { type: 'module', src: trusted(url), integrity, nonce: scriptNonce }
      const page = unclobbered(document)
      const script = Object.assign(page.createElement('script'), attributes, { onload, onerror })
      page.documentElement.append(script)
      takeOut(script) // it loads all the same
    } else onload()
  })
}
