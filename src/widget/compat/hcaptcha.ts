/** /compat/hcaptcha.js: the global `hcaptcha`, and containers of the classes `h-captcha` and `g-recaptcha`. */

import { Captchas, query, whenReady } from './captchas.ts'
import { type Options, type Values, warnOfUnmapped } from './options.ts'

/** The vendor's script also stands in for reCAPTCHA's, unless its address says otherwise. */
const isAlsoRecaptcha = query.get('recaptchacompat') !== 'off'

const isInvisible = ({ size }: Options) => size === 'invisible'
const captchas = Captchas.shared({
  selector: isAlsoRecaptcha ? '.h-captcha,.g-recaptcha' : '.h-captcha',
  fields: ['h-captcha-response', ...(isAlsoRecaptcha ? ['g-recaptcha-response'] : [])],
  fieldTag: 'textarea',
  isManual: isInvisible,
  isInvisible,
  idOf: index => `h-captcha-${index}`,
})

type Execution = { readonly async?: boolean } | null

/** Returns a promise only if asked for one; else error-callback tells errors. The options may be the only argument. */
function execute(which?: unknown, options?: Execution): Promise<object> | undefined {
  const hasOptionsAlone = typeof which === 'object' && !(which instanceof Element) && !options
  if (hasOptionsAlone) return execute(undefined, (which as Execution) ?? {})
  const isAsync = options?.async === true
  const captcha = captchas.find(which)
  if (captcha === undefined) return isAsync ? Promise.reject('missing-captcha') : undefined
  const executing = captchas.execute(captcha).then(
    response => ({ response, key: captcha.id }),
    error => Promise.reject(error.code ?? 'network'),
  )
  if (isAsync) return executing
  executing.catch(() => {})
  return undefined
}

const hcaptcha = {
  ready: whenReady,
  render: (where: unknown, values?: Values | null) => captchas.render(where, values)?.id,
  execute,
  reset: (which?: unknown) => captchas.reset(which),
  remove: (which?: unknown) => captchas.remove(which),
  close: (which?: unknown) => captchas.find(which)?.gate.cancel?.(),
  getResponse: (which?: unknown) => captchas.response(which),
  getRespKey: (which?: unknown) => (captchas.response(which) && captchas.find(which)?.id) || '',
  setData: (which: unknown, values?: Values) => warnOfUnmapped(values ?? (which as Values)),
}

Object.assign(window, { hcaptcha }, isAlsoRecaptcha ? { grecaptcha: hcaptcha } : {})
captchas.start(query.get('render') !== 'explicit')
