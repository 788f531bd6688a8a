import { createApp, h, ref } from 'vue'
import { PowGate } from '../../../../client/page/vue.js'
import { app, host, noteAs, siteKey } from './page.js' // which tells how tests use an app

const passed = noteAs('passed')
const gate = ref()
window.resetCaptcha = () => gate.value.reset()
const handlers = { onVerified: ({ token }) => passed(token), onExpired: noteAs('expired') }
createApp({
  render: () => h(PowGate, { ref: gate, siteKey, endpoint: host, auto: 'load', ...handlers }),
}).mount(app)
void gate.value.execute() // while the widget is loading
