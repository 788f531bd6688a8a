/** What the scripts of a page read of the device, and what they store on it. */

import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'

const PRIVACY = readFileSync(new URL('../../docs/privacy.md', import.meta.url), 'utf8')

/**
 * A script that a page runs before its own. It replaces getters and functions by proxies that note each use in `deviceReads`, such as
 * `screen.width`. (A worker has a scope of its own, which this does not see.)
 */
export const WATCH_READS = `{
const reads = window.deviceReads = new Set()
const watch = (prefix, owner, names = Object.getOwnPropertyNames(owner ?? {})) => {
  for (const name of names) {
    const property = Object.getOwnPropertyDescriptor(owner, name)
    const noting = target => new Proxy(target, {
      apply: (...call) => { reads.add(prefix + name); return Reflect.apply(...call) },
      construct: (...call) => { reads.add(prefix + name); return Reflect.construct(...call) },
    })
    if (property?.get) Object.defineProperty(owner, name, { ...property, get: noting(property.get) })
    else if (typeof property?.value === 'function' && name !== 'constructor')
      Object.defineProperty(owner, name, { ...property, value: noting(property.value) })
  }
}
watch('', Navigator.prototype)
watch('screen.', Screen.prototype)
watch('connection.', window.NetworkInformation?.prototype)
watch('userAgentData.', window.NavigatorUAData?.prototype)
watch('Notification.', Notification, ['permission'])
watch('Intl.', Intl, ['DateTimeFormat'])
watch('document.', Document.prototype, ['cookie', 'referrer'])
watch('canvas.', HTMLCanvasElement.prototype, ['getContext', 'toDataURL', 'toBlob'])
watch('Date.', Date.prototype, ['getTimezoneOffset'])
watch('', window, ('OffscreenCanvas AudioContext OfflineAudioContext matchMedia devicePixelRatio outerWidth outerHeight screenX ' +
  'screenY localStorage sessionStorage indexedDB caches cookieStore speechSynthesis').split(' '))
}`

export const readsOf = async (page: Page): Promise<string[]> =>
  ((await page.evaluate('[...deviceReads]')) as string[]).sort()

/** What docs/privacy.md says is read for a site with these signals. Its row `flags` has only what is read beside that of `none`. */
export function documentedReads(signals: 'none' | 'flags'): string[] {
  const settings = signals === 'none' ? ['none'] : ['none', 'flags']
  const cells = settings.map(name => new RegExp(`^\\| \`${name}\`[^|]*\\|([^|]*)\\|`, 'm').exec(PRIVACY)![1]!)
  return cells.flatMap(cell => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)).sort()
}
