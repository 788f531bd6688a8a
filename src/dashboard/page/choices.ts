/** The viewer's choices: range and site are in the page's address, which can be shared, the theme in localStorage. */

import { OTHER_SITES, RANGES, type Range } from '../data.ts'
import type { DashboardData } from '../history.ts'
import { byId, h } from './dom.ts'
import { short } from './format.ts'

const THEME = 'powgate-theme'

export class Choices {
  readonly #sites = byId('site', HTMLSelectElement)
  readonly #ranges = [...document.querySelectorAll<HTMLInputElement>('input[name=range]')]
  readonly #onChange: () => void
  #range: Range
  /** Empty for all sites. */
  #site: string

  constructor(onChange: () => void) {
    const asked = new URLSearchParams(location.search)
    this.#range = RANGES.find(range => range === asked.get('range')) ?? '30m'
    this.#site = asked.get('site') ?? ''
    for (const input of this.#ranges) {
      input.checked = input.value === this.#range
      input.addEventListener('change', () => {
        this.#range = input.value as Range
        this.#apply()
      })
    }
    this.#onChange = onChange
    this.#sites.addEventListener('change', () => this.chooseSite(this.#sites.value))
    startTheme()
  }

  /** @param siteKey empty for all sites */
  chooseSite(siteKey: string): void {
    this.#site = siteKey
    this.#apply()
  }

  get query(): string {
    const query = new URLSearchParams({ range: this.#range })
    if (this.#site !== '') query.set('site', this.#site)
    return query.toString()
  }

  /** Lists the chosen site even without requests. */
  showSites({ sites, site, siteName }: DashboardData): void {
    // A list in use must not change.
    if (document.activeElement === this.#sites) return
    const isListed = site === null || sites.some(({ siteKey }) => siteKey === site)
    const listed = isListed ? sites : [...sites, { siteKey: site, name: siteName ?? site, requests: 0 }]
    const options = listed.map(({ siteKey, name, requests }) => {
      const key = name === siteKey ? '' : ` · ${siteKey.slice(0, 12)}…`
      const label = siteKey === OTHER_SITES ? 'Other sites' : `${name}${key}`
      return h('option', { value: siteKey }, `${label} (${short(requests)})`)
    })
    this.#sites.replaceChildren(this.#sites.options[0]!, ...options)
    this.#sites.value = this.#site
  }

  #apply(): void {
    history.replaceState(null, '', `?${this.query}`)
    this.#onChange()
  }
}

function startTheme(): void {
  const select = byId('theme', HTMLSelectElement)
  const show = () => {
    document.documentElement.dataset.theme = select.value
  }
  select.value = storage()?.getItem(THEME) ?? ''
  show()
  select.addEventListener('change', () => {
    show()
    storage()?.setItem(THEME, select.value)
  })
}

/** A browser may forbid storage. The theme then lasts as long as the page. */
function storage(): Storage | undefined {
  try {
    return localStorage
  } catch {
    return undefined
  }
}
