import { createApp } from 'vue'
import { useReCaptcha, VueReCaptcha } from 'vue-recaptcha-v3'
import { app, noteAs, siteKey } from './page.js' // which tells how tests use an app

/** With these parameters the package renders without a container. */
const explicitRenderParameters = { badge: 'bottomleft', size: 'invisible' }
createApp({
  setup() {
    const { executeRecaptcha, recaptchaLoaded } = useReCaptcha()
    recaptchaLoaded().then(() => {
      window.execute = () => executeRecaptcha('login').then(noteAs('passed'), noteAs('failed'))
    })
    return () => null
  },
})
  .use(VueReCaptcha, { siteKey, loaderOptions: { explicitRenderParameters } })
  .mount(app)
