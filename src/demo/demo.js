/** Sends the form without leaving the page, and shows the section that the backend answers. */

const form = document.getElementById('form')
const result = document.getElementById('result')
const gate = form.querySelector('pow-gate')
const button = form.querySelector('button')

// Each puzzle has a site of its own.
form.addEventListener('change', ({ target }) => {
  const { siteKey } = target.dataset
  if (siteKey === undefined) return
  gate.setAttribute('site-key', siteKey)
  gate.execute?.().catch(() => {}) // the widget tells why
})

gate.addEventListener('verified', ({ detail }) => {
  form.querySelector(':checked + output').textContent = `${detail.solveTimeMs} ms`
})

form.addEventListener('submit', event => {
  event.preventDefault()
  void send(new URLSearchParams(new FormData(form)))
})

async function send(fields) {
  button.disabled = true
  try {
    const response = await fetch(form.action, { method: 'POST', body: fields })
    const text = await response.text()
    const answered = new DOMParser().parseFromString(text, 'text/html').querySelector('.result')
    if (answered) show(answered, fields)
    else refuse(JSON.parse(text).error) // The demo is off by now.
  } catch {
    // No answer came, or the page of a proxy that does not reach the service.
    refuse('The service cannot be reached.')
  } finally {
    button.disabled = false
    gate.reset?.() // a token works once
  }
}

/** @param answered section of the backend's page */
function show(answered, fields) {
  const isAccepted = answered.classList.contains('accepted')
  result.replaceChildren(...answered.childNodes)
  if (isAccepted) {
    const again = document.createElement('button')
    again.textContent = 'Send the same token again'
    again.type = 'button'
    again.className = 'plain'
    again.addEventListener('click', () => send(fields))
    result.append(again)
  }
  reveal(isAccepted ? 'accepted' : 'refused')
}

function refuse(why) {
  result.textContent = `Not sent. ${why}`
  reveal('refused')
}

function reveal(look) {
  result.className = `result ${look}`
  result.hidden = false
  result.focus()
  result.scrollIntoView({ block: 'nearest' })
}
