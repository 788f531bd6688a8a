/** `powgate widget`: prints the tags and the policy for a page that shows the widget. */

import { findWidget, type Widget } from '../http/assets.ts'
import { OperatorError } from '../words/errors.ts'
import type { CommandEntry, Input } from './command.ts'
import { printJson, printLine } from './output.ts'
import { SITE_KEY_FLAG, URL_FLAG } from './try.ts'

const DEFAULT_URL = 'http://127.0.0.1:8080'

export const WIDGET_COMMAND: CommandEntry = {
  name: 'widget',
  about: 'Print what a page needs: the script tag, its pinned form, and the Content-Security-Policy.',
  flags: {
    url: { ...URL_FLAG, about: `Address of the service, as browsers see it. Default: ${DEFAULT_URL}.` },
    'site-key': SITE_KEY_FLAG,
  },
  example: '--url https://captcha.example.com --site-key site_0123456789ABCDEFabcdef',
  run: runWidget,
}

type Snippets = ReturnType<typeof snippetsFor>

function snippetsFor(widget: Widget, url: string, siteKey: string) {
  const base = encodeAttribute(new URL(url).href.replace(/\/+$/, ''))
  const { fileName } = widget.files.find(({ name }) => name === 'widget.js')!
  const { origin } = new URL(url)
  return {
    script: `<script src="${base}/widget.js" async></script>`,
    pinnedScript: `<script src="${base}/widget/${fileName}" integrity="${widget.integrity}" crossorigin="anonymous" async></script>`,
    element: `<pow-gate site-key="${siteKey}"></pow-gate>`,
    // The workers start in a hidden frame of the service, which has a policy of its own, so the page needs no `worker-src`.
    csp: ['script-src', 'connect-src', 'frame-src'].map(directive => `${directive} ${origin}`),
  }
}

async function runWidget(input: Input): Promise<void> {
  const widget = findWidget()
  if (widget === undefined) throw new OperatorError('the widget is not built: run npm run build')
  const url = input.text('url') ?? DEFAULT_URL
  const snippets = snippetsFor(widget, url, input.text('site-key') ?? 'site_...')
  const { integrity, files } = widget
  if (input.has('json')) printJson({ url, ...snippets, integrity, files })
  else printWidget(snippets)
}

function printWidget({ script, pinnedScript, element, csp }: Snippets): void {
  printLine('In the page, and in the form (the token arrives as the field powgate-token):', '')
  printLine(`  ${script}`, `  ${element}`, '')
  printLine('Pinned to this build: after an upgrade of the service, print it again.', '')
  printLine(`  ${pinnedScript}`, '')
  printLine('If the page has a Content-Security-Policy, add the address to these directives of it.')
  printLine('A missing one starts as a copy of default-src; without that, leave it out:', '')
  printLine(`  ${csp.join('; ')}`, '')
  printLine('--json lists each file too.')
}

/** A URL's href has no double quotes or angle brackets. */
function encodeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll("'", '&#39;')
}
