/** What the apps share. Tests bundle each app, call resetCaptcha() (of reCAPTCHA v3 execute(), show()) and read `calls`. */

export const { siteKey, host } = document.documentElement.dataset
export const app = document.getElementById('app')
window.calls = []
/** @returns a callback for an app's component: each call of it adds this name and its value to `calls` */
export const noteAs = name => value => void window.calls.push([name, value])
