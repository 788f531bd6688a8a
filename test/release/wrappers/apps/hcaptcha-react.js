import HCaptcha from '@hcaptcha/react-hcaptcha'
import { createElement, createRef } from 'react'
import { createRoot } from 'react-dom/client'
import { app, host, noteAs, siteKey } from './page.js' // which tells how tests use an app

const ref = createRef()
window.resetCaptcha = () => ref.current.resetCaptcha()
const scriptSource = `${host}/compat/hcaptcha.js`
const calls = { onVerify: noteAs('passed'), onExpire: noteAs('expired') }
const props = { ref, sitekey: siteKey, scriptSource, sentry: false, ...calls }
createRoot(app).render(createElement(HCaptcha, props))
