'use client'

import { createElement, forwardRef, useEffect, useImperativeHandle, useRef } from 'react'
import { attributesOf, listenTo, loadWidget } from './load.js'

/** One object for all renderings: React 19.0 to 19.2 empty the element, token field included, when they get another one. */
const NO_HTML = { __html: '' }

/**
 * <pow-gate> for React 18 and 19. It loads the widget when the page is there, and listens by itself: React takes over no
 * listeners of custom elements in markup that a server has sent.
 */
export const PowGate = forwardRef(function PowGate(properties, ref) {
  const { nonce, className, onVerified, onFailed, onExpired, onStateChange, onProgress, ...rest } = properties
  const { endpoint } = rest
  const gate = useRef(null)
  const handlers = useRef({})
  /** Effects run twice in StrictMode, but `onVerified` is called once for a token. */
  const lastToken = useRef(null)
  useImperativeHandle(ref, () => gate.current, [])
  useEffect(() => {
    handlers.current = {
      verified: onVerified,
      failed: onFailed,
      expired: onExpired,
      statechange: onStateChange,
      progress: onProgress,
    }
  })
  useEffect(() => loadWidget(endpoint, { nonce }), [endpoint, nonce])
  useEffect(
    () =>
      listenTo(gate.current, (type, detail) => {
        if (type === 'verified' && lastToken.current === detail.token) return
        if (type === 'verified') lastToken.current = detail.token
        handlers.current[type]?.(detail)
      }),
    [],
  )
  return createElement('pow-gate', {
    ...attributesOf(rest),
    class: className,
    ref: gate,
    // What the element has inside, and its attributes, may differ from what the server sent.
    suppressHydrationWarning: true,
    dangerouslySetInnerHTML: NO_HTML,
  })
})
