/** The apps share settings and `calls`. Tests bundle each app, call resetCaptcha() (of reCAPTCHA v3 execute(), show()) and read `calls`. */

export const { siteKey, host } = document.documentElement.dataset
export const app = document.getElementById('app')
window.calls = []
export const note = name => value => void window.calls.push([name, value])
