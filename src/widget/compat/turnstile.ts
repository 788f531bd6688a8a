/** /compat/turnstile.js: the global `turnstile`, and containers of the class `cf-turnstile`. */

import { Captchas, query, whenReady } from './captchas.ts'
import { type Options, type Values, warnOfUnmapped } from './options.ts'

const captchas = Captchas.shared({
  selector: '.cf-turnstile',
  fields: ['cf-turnstile-response'],
  fieldTag: 'input',
  isRenewing: ({ refreshexpired = 'auto' }: Options) => refreshexpired === 'auto',
  isLastDefault: true,
  verifiesAfterReset: true,
  isManual: ({ execution }: Options) => execution === 'execute',
  isInvisible: ({ appearance, size }: Options) => appearance === 'interaction-only' || size === 'invisible',
  idOf: index => `cf-chl-widget-${index}`,
  patterns: { action: /^[\w-]{0,32}$/, cdata: /^[\w-]{0,255}$/ },
})

const turnstile = {
  ready: whenReady,
  render: (where: unknown, values?: Values | null) => captchas.render(where, values)?.id,
  /** Renders the container first if needed. */
  execute: (which?: unknown, values?: Values | null) => {
    warnOfUnmapped(values)
    const captcha = captchas.find(which) ?? captchas.render(which, { ...values, execution: 'execute' })
    if (captcha !== undefined) captchas.execute(captcha, values).catch(() => {}) // the page hears of it by error-callback
  },
  reset: (which?: unknown) => captchas.reset(which),
  remove: (which?: unknown) => captchas.remove(which),
  getResponse: (which?: unknown) => captchas.response(which) || undefined,
  isExpired: (which?: unknown) => captchas.find(which)?.hasExpired ?? false,
}

Object.assign(window, { turnstile })
captchas.start(query.get('render') !== 'explicit')
