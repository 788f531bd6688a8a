import { Turnstile } from '@marsidev/react-turnstile'
import { createElement, createRef } from 'react'
import { createRoot } from 'react-dom/client'
import { app, noteAs, siteKey } from './page.js' // which tells how tests use an app

const ref = createRef()
window.resetCaptcha = () => ref.current.reset()
// The page has the script already: the package would load it from the vendor.
const props = { ref, siteKey, injectScript: false, onSuccess: noteAs('passed'), onExpire: noteAs('expired') }
createRoot(app).render(createElement(Turnstile, props))
