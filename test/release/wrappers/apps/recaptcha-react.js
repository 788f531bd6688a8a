import { createElement, createRef } from 'react'
import { createRoot } from 'react-dom/client'
import ReCAPTCHA from 'react-google-recaptcha/lib/recaptcha'
import { app, note, siteKey } from './page.js' // which tells how tests use an app

const passed = note('passed')
const ref = createRef()
window.resetCaptcha = () => ref.current.reset()
const props = { ref, sitekey: siteKey, onChange: passed, onExpired: note('expired') }
grecaptcha.ready(() => {
  createRoot(app).render(
    createElement(ReCAPTCHA.default ?? ReCAPTCHA, { ...props, grecaptcha: window.grecaptcha }),
  )
})
