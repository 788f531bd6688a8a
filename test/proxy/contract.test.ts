/**
 * The contract through real proxies, with clients at many addresses: nothing that holds for a client who calls powgate
 * itself may be lost on the way. What takes a minute is not asked again here: a minute is as long behind a proxy.
 */

import { challengeTests } from '../contract/challenge.ts'
import { limitTests } from '../contract/limits.ts'
import { CONTRACT } from '../contract/sections.ts'
import { onHosts } from '../contract/support.ts'
import { verifyTests } from '../contract/verify.ts'

/** What depends on the visitor's address. */
const BY_ADDRESS = {
  'GET /challenge': challengeTests,
  'POST /verify': verifyTests,
  limits: limitTests,
}

onHosts([
  { kind: 'redis', front: 'nginx', sections: CONTRACT },
  { kind: 'embedded', front: 'haproxy-v2', sections: CONTRACT },
  { kind: 'embedded', front: 'haproxy', sections: BY_ADDRESS },
  { kind: 'embedded', front: 'apache', sections: BY_ADDRESS },
  { kind: 'embedded', front: 'caddy', sections: BY_ADDRESS },
])
