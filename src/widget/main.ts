/** Entry of the widget: one script, classic or module, that defines <pow-gate>. Loading it twice does no harm. */

import { PowGateElement } from './element.ts'

if (customElements.get('pow-gate') === undefined) customElements.define('pow-gate', PowGateElement)
