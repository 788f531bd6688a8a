import { createElement, createRef } from 'react'
import { createRoot } from 'react-dom/client'
import ReCAPTCHA from 'react-google-recaptcha/lib/recaptcha' // the main module would load Google's script
import { app, noteAs, siteKey } from './page.js' // which tells how tests use an app

const passed = noteAs('passed')
const ref = createRef()
window.resetCaptcha = () => ref.current.reset()
const props = { ref, sitekey: siteKey, onChange: passed, onExpired: noteAs('expired') }
grecaptcha.ready(() => {
  createRoot(app).render(
    createElement(ReCAPTCHA.default ?? ReCAPTCHA, { ...props, grecaptcha: window.grecaptcha }),
  )
})
