/** Last step of `npm run build`: bundles the widget into dist/widget/, and fails if a visitor would load too much. */

import { bundleWidget, writeWidget } from './bundle.ts'
import { report, summary, VISIT_BYTES_MAX, visitsOf } from './sizes.ts'

const FOLDER = new URL('../../../dist/widget/', import.meta.url)

const manifest = writeWidget(FOLDER, await bundleWidget())
const visits = visitsOf(manifest)
const isTooLarge = visits[0]!.bytes > VISIT_BYTES_MAX
// `npm start` and `npm test` build with `npm run -s`: they need only one line.
const isBrief = process.env.npm_config_loglevel === 'silent' && !isTooLarge
process.stdout.write((isBrief ? '' : report(manifest, visits)) + summary(visits))
if (isTooLarge) {
  process.stderr.write(`The widget is too large: more than ${VISIT_BYTES_MAX} bytes ${visits[0]!.about}.\n`)
  process.exitCode = 1
}
