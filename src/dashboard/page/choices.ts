/** The viewer's choices of a range and a site: they are in the page's address, which can be shared. */

import { OTHER_SITES, RANGES } from '../data.ts'
import type { DashboardData } from '../history.ts'
import { byId, h } from './dom.ts'
import { short } from './format.ts'

/** The chosen range and site, as data.json takes them. */
export function chosenQuery(): URLSearchParams {
  const query = new URLSearchParams(location.search)
  if (!RANGES.some(range => range === query.get('range'))) query.set('range', RANGES[0])
  return query
}

/** @param value a range; or a site key, empty for all sites */
export function choose(name: 'range' | 'site', value: string): void {
  const query = chosenQuery()
  query.set(name, value)
  history.replaceState(null, '', `?${query}`)
}

/** @param onChange called after another range or site was chosen in the page's head */
export function startChoices(onChange: () => void): void {
  const listen = (name: 'range' | 'site', control: HTMLInputElement | HTMLSelectElement) =>
    control.addEventListener('change', () => {
      choose(name, control.value)
      onChange()
    })
  listen('site', byId<HTMLSelectElement>('site'))
  for (const input of document.querySelectorAll<HTMLInputElement>('input[name=range]')) {
    input.checked = input.value === chosenQuery().get('range')
    listen('range', input)
  }
}

/** Fills the list of sites, in which the chosen one is even without requests. */
export function showSites({ sites, site, siteName }: DashboardData): void {
  const select = byId<HTMLSelectElement>('site')
  // A list in use must not change.
  if (document.activeElement === select) return
  const isListed = site === null || sites.some(({ siteKey }) => siteKey === site)
  const listed = isListed ? sites : [...sites, { siteKey: site, name: siteName ?? site, requests: 0 }]
  const options = listed.map(({ siteKey, name, requests }) => {
    const key = name === siteKey ? '' : ` · ${siteKey.slice(0, 12)}…`
    const label = siteKey === OTHER_SITES ? 'Other sites' : `${name}${key}`
    return h('option', { value: siteKey }, `${label} (${short(requests)})`)
  })
  select.replaceChildren(select.options[0]!, ...options) // the first is "All sites"
  select.value = site ?? ''
}
