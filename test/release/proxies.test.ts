/** What of the contract depends on the visitor's address, through the proxies that contract/hosts.test.ts leaves out. */

import { BY_ADDRESS, only } from '../contract/sections.ts'
import { onHosts } from '../contract/support.ts'

const sections = only(...BY_ADDRESS)
onHosts((['haproxy', 'apache', 'caddy'] as const).map(front => ({ store: 'embedded', front, sections })))
