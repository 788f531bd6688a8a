/** Names of the element's events. */
export const EVENTS = ['verified', 'failed', 'expired', 'statechange', 'progress']

/**
 * Adds the widget's script to the page, once. Call it when the page is there (an effect, `onMounted`): a script in the markup
 * could change the element before the framework has compared it with what the server sent.
 */
export function loadWidget(endpoint, { nonce } = {}) {
  const src = `${endpoint.replace(/\/+$/, '')}/widget.js`
  const isThere = [...document.scripts].some(script => script.src === new URL(src, document.baseURI).href)
  if (isThere || customElements.get('pow-gate')) return
  const script = Object.assign(document.createElement('script'), { src, async: true })
  if (nonce) script.nonce = nonce
  script.onerror = () => script.remove() // The next element's call loads it again.
  document.head.append(script)
}

/**
 * Listens to all events of an element until the returned function is called. A token that was there before is told as well.
 *
 * @param tell called with the event's name and its details
 */
export function listenTo(gate, tell) {
  const listener = ({ type, detail }) => tell(type, detail)
  for (const type of EVENTS) gate.addEventListener(type, listener)
  if (gate.token) tell('verified', { token: gate.token, expiresAt: gate.expiresAt })
  return () => {
    for (const type of EVENTS) gate.removeEventListener(type, listener)
  }
}

/**
 * Properties as attributes: `siteKey` becomes `site-key`, `textIdle` becomes `text-idle`. A flag is `true`, because frameworks
 * set it as a property once the widget is there, and the property takes '' as off.
 */
export function attributesOf(properties) {
  const entries = Object.entries(properties).map(([name, value]) => {
    const attribute = /^(siteKey|workerSrc|text[A-Z])/.test(name)
      ? name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
      : name
    const isOn = value === '' && /^(disabled|invisible)$/.test(name)
    return [attribute, isOn || (value === false ? undefined : value)]
  })
  return Object.fromEntries(entries)
}
