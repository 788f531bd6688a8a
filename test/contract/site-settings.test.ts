/** Contract, what sites have of their own, on a service for these tests alone: one of them restarts it. */

import { siteSettingTests } from './site-settings.ts'
import { onEachStore } from './support.ts'

onEachStore({ 'settings of a site': siteSettingTests })
