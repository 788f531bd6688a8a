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
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    show(page.querySelector('.result'), fields)
  } catch {
    result.textContent = 'Not sent: the service cannot be reached.'
    reveal('refused')
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

function reveal(look) {
  result.className = `result ${look}`
  result.hidden = false
  result.focus()
  result.scrollIntoView({ block: 'nearest' })
}
