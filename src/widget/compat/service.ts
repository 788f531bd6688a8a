/** Where the script came from, and the widget that it loads from there. */

/** This script's element; null in a module. Called through the getter, which `<img name="currentScript">` does not shadow. */
const script = Reflect.get(Document.prototype, 'currentScript', document) as HTMLScriptElement | null
const ADDRESS = /(https?:[^\s?#]*?)\/(?:compat\/|widget\/compat-)[\w.]+\.js(\?[^\s#:)]*)?/
/** A stack trace comes first, because an injected `<base>` changes what `src` says. */
const found = ADDRESS.exec(`${new Error().stack}`) ?? ADDRESS.exec(script?.src ?? '')
/** The query of the script's address: `?render=explicit&onload=NAME`. */
export const query = new URLSearchParams(ADDRESS.exec(script?.src ?? '')?.[2] ?? found?.[2] ?? '')

/** The page's markup is complete. */
const domReady = new Promise<unknown>(resolve => {
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', resolve)
  else setTimeout(resolve) // when the rest of this script has run
})

/** <pow-gate> is defined. `import` and not a script element, for which Trusted Types would need a policy. */
const widget = import(`${found?.[1]}/widget/${ASSET_NAMES.widgetJs}`).then(() =>
  customElements.whenDefined('pow-gate'),
)

/** The vendor's script would call `onload` now. */
const ready = Promise.all([widget, domReady])
ready.catch(error => console.error(`powgate: the widget did not load: ${error}`))

export const service = { domReady, widget, ready }
