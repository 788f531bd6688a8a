import { createElement, StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { GoogleReCaptchaProvider, useGoogleReCaptcha } from 'react-google-recaptcha-v3'
import { app, noteAs, siteKey } from './page.js' // which tells how tests use an app

function Form() {
  const { executeRecaptcha } = useGoogleReCaptcha()
  window.execute =
    executeRecaptcha && (() => executeRecaptcha('login').then(noteAs('passed'), noteAs('failed')))
  return null
}
function App() {
  const [isShown, show] = useState(true)
  window.show = show
  const provider = createElement(GoogleReCaptchaProvider, { reCaptchaKey: siteKey }, createElement(Form))
  return isShown ? provider : null
}
createRoot(app).render(createElement(StrictMode, null, createElement(App)))
