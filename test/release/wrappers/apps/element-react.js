import { createElement, createRef } from 'react'
import { createRoot } from 'react-dom/client'
import { app, noteAs, siteKey } from './page.js' // which tells how tests use an app

const passed = noteAs('passed')
const ref = createRef()
window.resetCaptcha = () => ref.current.reset()
// The page's /widget.js defines pow-gate. React 19 listens to an element's events by their names.
const onverified = ({ detail }) => passed(detail.token)
const props = { ref, 'site-key': siteKey, auto: 'load', onverified, onexpired: noteAs('expired') }
createRoot(app).render(createElement('pow-gate', props))
