import { SETTINGS } from '../../src/config/settings.ts'
import type { Lifetimes } from '../../src/domain/nonce.ts'

/** Lifetimes of challenges and tokens of a service with these settings. */
export function lifetimesOf(env: Readonly<Record<string, string>> = {}): Lifetimes {
  const milliseconds = (name: 'POWGATE_CHALLENGE_SECONDS' | 'POWGATE_TOKEN_SECONDS') =>
    Number(env[name] ?? SETTINGS[name].fallback) * 1000
  return {
    challengeLifetimeMs: milliseconds('POWGATE_CHALLENGE_SECONDS'),
    tokenLifetimeMs: milliseconds('POWGATE_TOKEN_SECONDS'),
  }
}
