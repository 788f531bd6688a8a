/** What the apps share: the page's settings, and a record of what the wrappers call. */

export const { siteKey, host } = document.documentElement.dataset
export const app = document.getElementById('app')
window.calls = []
export const note = name => value => void window.calls.push([name, value])
