/* What the element needs to know of other scripts: a token counts once, and an outage must not hold a form that may pass. */
;(() => {
  // Elements that an outage has taken out of their forms, and where they stood.
  var away = new Map()
  function reset(root) {
    away.forEach((place, gate) => {
      if (root.contains(place)) {
        away.delete(gate)
        place.prepend(gate)
      }
    })
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
  // A form under "Other forms" that a script sends, by whatever means: the answer's header says that the token is spent. Elementor and
  // Fluent Forms stay on the page after an error.
  if (window.PerformanceObserver) {
    new PerformanceObserver(list => {
      if (list.getEntries().some(entry => entry.serverTiming?.some(({ name }) => name === 'powgate'))) {
        document.querySelectorAll('pow-gate').forEach(gate => {
          if (gate.token) {
            gate.reset() // others may wait for their token
          }
        })
      }
    }).observe({ type: 'resource' })
  }
  var jQuery
  var gform
  function install() {
    // Optimisers put a function without `fn` in its place until it is loaded.
    if (window.jQuery?.fn && window.jQuery !== jQuery) {
      jQuery = window.jQuery
      jQuery(document).on('checkout_error wpformsAjaxSubmitFailed wpformsAjaxSubmitError', () => {
        reset(document)
      })
    }
    // Gravity Forms, since its version 2.9, sends by form.submit(), which waits for no token. "Next" submits if all later pages are hidden;
    // it waits for 3 s at most, because most pages need no token, and an outage would hold each for 20 s.
    if (window.gform?.utils?.addAsyncFilter && window.gform !== gform) {
      gform = window.gform
      gform.utils.addAsyncFilter('gform/submission/pre_submission', data => {
        var gate = data.submissionType !== 'previous' && data.form.querySelector('pow-gate')
        var goOn = () => data
        if (!gate?.execute) {
          return data
        }
        var verified = gate.execute().then(goOn, goOn)
        return data.submissionType === 'next'
          ? Promise.race([verified, new Promise(resolve => setTimeout(resolve, 3000, data))])
          : verified
      })
    }
  }
  // An optimiser may load this script, or theirs, when the visitor first does something: after `load`, and in any order.
  install()
  window.addEventListener('load', install)
  document.addEventListener('click', install, true)
  // The event does not bubble, so it is caught on its way down.
  document.addEventListener(
    'failed',
    event => {
      var gate = event.target
      var mayPass = gate.localName === 'pow-gate' && gate.dataset.away === 'pass'
      var reasons = /^(network|unavailable|overloaded|assets|status-50[234])$/
      // After a renewal that failed, the state is `verified`: the token is still good.
      if (mayPass && gate.state === 'failed' && reasons.test(event.detail.code)) {
        away.set(gate, gate.parentNode)
        gate.remove()
      }
    },
    true,
  )
})()
