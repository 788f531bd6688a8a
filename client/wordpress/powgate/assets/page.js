/* What the element needs to know of other scripts: a token counts once, and an outage must not hold a form that may pass. */
;(() => {
  function reset(root) {
    root.querySelectorAll('pow-gate').forEach(gate => {
      if (gate.reset) {
        gate.reset()
      }
    })
  }
  // Forms that a script sends and that stay: Contact Form 7, then WooCommerce and WPForms, which speak jQuery.
  document.addEventListener('wpcf7submit', event => {
    reset(event.target)
  })
  window.addEventListener('load', () => {
    if (window.jQuery) {
      window.jQuery(document).on('checkout_error wpformsAjaxSubmitFailed', () => {
        reset(document)
      })
    }
    // Gravity Forms, since its version 2.9, sends by form.submit(), which waits for no token.
    if (window.gform?.utils?.addAsyncFilter) {
      window.gform.utils.addAsyncFilter('gform/submission/pre_submission', data => {
        var gate = data.submissionType === 'submit' && data.form.querySelector('pow-gate')
        var goOn = () => data
        return gate?.execute ? gate.execute().then(goOn, goOn) : data
      })
    }
  })
  // The event does not bubble, so it is caught on its way down.
  document.addEventListener(
    'failed',
    event => {
      var gate = event.target
      var isAway = event.detail && /^(network|unavailable|overloaded|assets)$/.test(event.detail.code)
      if (gate.localName === 'pow-gate' && gate.dataset.away === 'pass' && isAway) {
        gate.remove()
      }
    },
    true,
  )
})()
