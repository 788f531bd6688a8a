/**
 * Sends the form without leaving the page, and shows the backend's answer. Without this file, the browser sends the form,
 * and the backend answers with a page.
 */

const form = document.getElementById('form')
const result = document.getElementById('result')
const gate = form.querySelector('pow-gate')
const button = form.querySelector('button')

// The backend shows this time, but does not trust the value.
gate.addEventListener('verified', ({ detail }) => {
  document.getElementById('solve-ms').value = String(detail.solveTimeMs)
})

form.addEventListener('submit', event => {
  event.preventDefault()
  void send(new URLSearchParams(new FormData(form)))
})

async function send(fields) {
  button.disabled = true
  try {
    const headers = { Accept: 'application/json' }
    const response = await fetch(form.action, { method: 'POST', body: fields, headers })
    show(await response.json(), fields)
  } catch {
    show({ accepted: false, title: 'Not sent', text: 'The service cannot be reached.', facts: [] }, fields)
  } finally {
    button.disabled = false
    gate.reset?.() // a token is good for one use
  }
}

function show({ accepted, title, text, code, facts, redemption }, fields) {
  const list = element('dl', ...facts.flatMap(([name, value]) => [element('dt', name), element('dd', value)]))
  const paragraph = element('p', text)
  if (code) paragraph.append(' ', element('code', code))
  result.replaceChildren(element('h2', title), paragraph, ...(facts.length > 0 ? [list] : []))
  if (redemption) {
    const answer = element('pre', element('code', JSON.stringify(redemption.answer, undefined, 2)))
    answer.tabIndex = 0 // the answer may scroll
    result.append(element('h3', 'What /verify-token answered'), answer)
  }
  if (accepted) {
    const again = element('button', 'Send the same token again')
    again.type = 'button'
    again.className = 'plain'
    again.addEventListener('click', () => send(fields))
    result.append(again)
  }
  result.className = `result ${accepted ? 'accepted' : 'refused'}`
  result.hidden = false
  result.focus()
  result.scrollIntoView({ block: 'nearest' })
}

function element(name, ...children) {
  const made = document.createElement(name)
  made.append(...children)
  return made
}
