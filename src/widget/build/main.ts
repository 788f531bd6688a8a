/** Last step of `npm run build`: writes dist/widget/, and fails if a visitor would load too much. */

import { bundleWidget, writeWidget } from './bundle.ts'
import { report, summary, VISIT_BYTES_MAX, visitsOf, WIDGET_BYTES_MAX } from './sizes.ts'

const FOLDER = new URL('../../../dist/widget/', import.meta.url)

const manifest = writeWidget(FOLDER, await bundleWidget())
const visits = visitsOf(manifest)
const widgetBytes = manifest.files.find(({ name }) => name === 'widget.js')!.brotliBytes
const isTooLarge = widgetBytes > WIDGET_BYTES_MAX || visits[0]!.bytes > VISIT_BYTES_MAX
// Sizes are printed by `npm run build:widget`, but not by `npm run -s build:widget`, which other commands call.
const isQuiet = process.env.npm_config_loglevel === 'silent' && !isTooLarge
if (!isQuiet) process.stdout.write(report(manifest, visits) + summary(visits))
if (isTooLarge) {
  process.stderr.write(
    `The widget is too large: at most ${WIDGET_BYTES_MAX} bytes for widget.js, ${VISIT_BYTES_MAX} for a visitor.\n`,
  )
  process.exitCode = 1
}
