import { createApp, h, ref } from 'vue'
import VueTurnstile from 'vue-turnstile'
import { app, noteAs, siteKey } from './page.js' // which tells how tests use an app

const passed = noteAs('passed')
const expired = noteAs('expired')
const turnstile = ref()
window.resetCaptcha = () => turnstile.value.reset()
const modelValue = ref('')
createApp({
  render: () =>
    h(VueTurnstile, {
      ref: turnstile,
      siteKey,
      modelValue: modelValue.value,
      'onUpdate:modelValue': token => {
        modelValue.value = token
        if (token) passed(token)
        else expired()
      },
    }),
}).mount(app)
