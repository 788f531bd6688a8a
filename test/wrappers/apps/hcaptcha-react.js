import HCaptcha from '@hcaptcha/react-hcaptcha'
import { createElement, createRef } from 'react'
import { createRoot } from 'react-dom/client'
import { app, host, note, siteKey } from './page.js'

const ref = createRef()
window.resetCaptcha = () => ref.current.resetCaptcha()
const scriptSource = `${host}/compat/hcaptcha.js`
const props = { ref, sitekey: siteKey, scriptSource, sentry: false, onVerify: note('passed') }
createRoot(app).render(createElement(HCaptcha, props))
