import { createElement, createRef, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { PowGate } from '../../../../client/page/react.js'
import { app, host, noteAs, siteKey } from './page.js' // which tells how tests use an app

const passed = noteAs('passed')
const ref = createRef()
window.resetCaptcha = () => ref.current.reset()
const handlers = { onVerified: ({ token }) => passed(token), onExpired: noteAs('expired') }
const gate = createElement(PowGate, { ref, siteKey, endpoint: host, auto: 'load', ...handlers })
createRoot(app).render(createElement(StrictMode, null, gate))
