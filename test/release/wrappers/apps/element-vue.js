import { createApp, h, ref } from 'vue'
import { app, noteAs, siteKey } from './page.js' // which tells how tests use an app

const passed = noteAs('passed')
const gate = ref()
window.resetCaptcha = () => gate.value.reset()
// The page's /widget.js defines pow-gate. In a template: <pow-gate ref="gate" :site-key="siteKey" @verified="...">, with `isCustomElement` for pow-gate.
const onVerified = ({ detail }) => passed(detail.token)
const props = { ref: gate, 'site-key': siteKey, auto: 'load', onVerified, onExpired: noteAs('expired') }
createApp({ render: () => h('pow-gate', props) }).mount(app)
