/**
 * What the apps share. Tests bundle each app, call its window.resetCaptcha() and read `calls`. Apps of reCAPTCHA v3 have
 * window.execute() instead, once their script has loaded; show(false) and show(true) unmount and mount the one for React.
 */

/** Tests write both into <html>; `host` is the service's origin as pages see it. */
export const { siteKey, host } = document.documentElement.dataset
export const app = document.getElementById('app')
window.calls = []
/** @returns a callback for an app's component: each call of it adds this name and its value to `calls` */
export const noteAs = name => value => void window.calls.push([name, value])
