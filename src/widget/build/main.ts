/** The last step of `npm run build`: writes dist/widget/. */

import { bundleWidget, writeWidget } from './bundle.ts'

writeWidget(new URL('../../../dist/widget/', import.meta.url), await bundleWidget())
