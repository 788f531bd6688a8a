import VueHcaptcha from '@hcaptcha/vue3-hcaptcha'
import { createApp, h, ref } from 'vue'
import { app, host, noteAs, siteKey } from './page.js' // which tells how tests use an app

const hcaptcha = ref()
window.resetCaptcha = () => hcaptcha.value.reset()
const apiEndpoint = `${host}/compat/hcaptcha.js`
const calls = { onVerify: noteAs('passed'), onExpired: noteAs('expired') }
const props = { ref: hcaptcha, sitekey: siteKey, apiEndpoint, sentry: false, ...calls }
createApp({ render: () => h(VueHcaptcha, props) }).mount(app)
