/** The demo's two pages. Addresses are relative, because a proxy may put the service below another path. */

import type { FormDecision } from './backend.ts'
import { demoSiteKey } from './site.ts'

const HEADING = 'A form that bots pay for'

/**
 * @param base relative path to the service's root
 * @param scripts elements for the head
 */
function page(title: string, base: string, scripts: string, main: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}demo/demo.css">
${scripts}</head>
<body>
<main>
<h1>${HEADING}</h1>
${main}
</main>
</body>
</html>
`
}

export const FORM_PAGE = page(
  `powgate: ${HEADING.toLowerCase()}`,
  '',
  `<script src="widget.js" async></script>
<script src="demo/demo.js" defer></script>
`,
  `<p>This form is protected by powgate: while you write, your browser solves a small computation. There is no puzzle, no
cookie and no third party. Send it to see what the site&#39;s backend learns.</p>

<form id="form" action="demo/submit" method="post">
  <label for="name">Name</label>
  <input id="name" name="name" required maxlength="80" autocomplete="name">
  <label for="message">Message</label>
  <textarea id="message" name="message" required maxlength="1000" rows="4"></textarea>
  <fieldset>
    <legend>Your browser computes</legend>
    <label><input type="radio" name="puzzle" value="sha256" data-site-key="${demoSiteKey('sha256')}" autocomplete="off" checked>
      SHA-256: the same function for everybody <output></output></label>
    <label><input type="radio" name="puzzle" value="hashwx" data-site-key="${demoSiteKey('hashwx')}" autocomplete="off">
      HashWX: new functions each time, which gain little from a graphics card <output></output></label>
  </fieldset>
  <pow-gate site-key="${demoSiteKey('sha256')}"></pow-gate>
  <noscript><p class="note">Without JavaScript nothing is solved: the form is sent without a token, and refused.</p></noscript>
  <button type="submit">Send</button>
</form>

<section id="result" class="result" tabindex="-1" hidden></section>

<h2>What happens</h2>
<ol>
  <li>The widget asks the service for a challenge: <code>GET /challenge</code>.</li>
  <li>A worker of your browser tries counters until a hash starts with enough zero bits.</li>
  <li>The solution earns a token, good for one use within five minutes: <code>POST /verify</code>.</li>
  <li>The form carries the token to the site&#39;s backend, here <code>demo/submit</code>, which redeems it:
    <code>POST /verify-token</code>. The backend never sees more of you than the form, your address and a score.</li>
</ol>

<h2>In a page of your own</h2>
<p><code>powgate site create</code> makes the keys, and <code>powgate widget</code> prints the two lines of HTML. The token
arrives as the form field <code>powgate-token</code>. For scripts: the widget&#39;s <a href="widget/powgate.d.ts">types</a>.</p>
<p class="note">This page&#39;s own site lets everybody through, so that you can see any score. The page is served on a
first start, and with <code>POWGATE_DEMO=on</code>.</p>`,
)

/** The answer to a form; demo.js takes only its section. */
export function resultPage(outcome: FormDecision): string {
  const { accepted, title, text, code, answer } = outcome
  return page(
    `powgate: ${escaped(title.toLowerCase())}`,
    '../',
    '',
    `<section class="result ${accepted ? 'accepted' : 'refused'}">
<h2>${escaped(title)}</h2>
<p>${escaped(text)}${code === null ? '' : ` <code>${escaped(code)}</code>`}</p>
${answer === undefined ? '' : answerHtml(answer)}</section>
<p><a href="../demo">Back to the form</a></p>`,
  )
}

function answerHtml(answer: unknown): string {
  const json = JSON.stringify(answer, undefined, 2)
  return `<h3>What /verify-token answered</h3>\n<pre tabindex="0"><code>${escaped(json)}</code></pre>\n`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}
