import { Turnstile } from '@marsidev/react-turnstile'
import { createElement, createRef } from 'react'
import { createRoot } from 'react-dom/client'
import { app, note, siteKey } from './page.js' // which tells how tests use an app

const ref = createRef()
window.resetCaptcha = () => ref.current.reset()
const props = { ref, siteKey, injectScript: false, onSuccess: note('passed'), onExpire: note('expired') }
createRoot(app).render(createElement(Turnstile, props))
