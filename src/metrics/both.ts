/** Two listeners of the same events. */

import type { Events } from '../endpoints/service.ts'

export function both(first: Events, second: Events): Events {
  return {
    issued(exchange, challenge) {
      first.issued(exchange, challenge)
      second.issued(exchange, challenge)
    },
    judged(exchange, judgement) {
      first.judged(exchange, judgement)
      second.judged(exchange, judgement)
    },
    redeemed(exchange, apiKey, claims) {
      first.redeemed(exchange, apiKey, claims)
      second.redeemed(exchange, apiKey, claims)
    },
    refused(exchange, endpoint, reason, policy) {
      first.refused(exchange, endpoint, reason, policy)
      second.refused(exchange, endpoint, reason, policy)
    },
  }
}
