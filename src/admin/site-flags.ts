/** The flags that describe a site, and what they make of its settings. */

import { parseRange } from '../domain/address.ts'
import { isOriginPattern } from '../domain/origin.ts'
import { isSiteKey } from '../domain/site.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN } from '../protocol/proof.ts'
import { type Flag, type FlagValue, type Input, type Positional, UsageError } from './command.ts'
import type { SiteSettings } from './sites.ts'

export const SITE_KEY: Positional = {
  name: 'SITE_KEY',
  expects: 'site_ and 22 letters or digits',
  accepts: isSiteKey,
}

export const JSON_FLAG: Flag = { about: 'Print JSON on one line instead of text.' }

const NAME_CHARACTERS_MAX = 100

const ORIGIN: FlagValue = {
  placeholder: 'ORIGIN',
  repeats: true,
  expects: 'an origin as browsers send it, such as https://example.com or https://*.example.com',
  accepts: isOriginPattern,
  suggest: nearestOrigin,
}

const CIDR: FlagValue = {
  placeholder: 'CIDR',
  repeats: true,
  expects: 'an IP address or a CIDR, such as 203.0.113.7 or 203.0.113.0/24',
  accepts: text => parseRange(text) !== undefined,
}

const BITS: FlagValue = {
  placeholder: 'BITS',
  expects: `an integer from ${DIFFICULTY_MIN} to ${DIFFICULTY_MAX}`,
  accepts: text => /^\d{2}$/.test(text) && Number(text) >= DIFFICULTY_MIN && Number(text) <= DIFFICULTY_MAX,
}

export const SITE_FLAGS = {
  name: {
    about: 'What people call the site.',
    value: {
      placeholder: 'NAME',
      expects: `1 to ${NAME_CHARACTERS_MAX} printable characters`,
      accepts: isName,
    },
  },
  origin: { about: 'Origin that may use the site key; without any, every origin may.', value: ORIGIN },
  plan: {
    about: 'free, or pro, which has IP rules. A new site is free.',
    value: {
      placeholder: 'PLAN',
      expects: 'free or pro',
      accepts: text => text === 'free' || text === 'pro',
    },
  },
  threshold: {
    about: 'Lowest score that passes, 0 to 1. A new site has 0.5.',
    value: { placeholder: 'SCORE', expects: 'a number from 0 to 1', accepts: isScore },
  },
  base: { about: 'Difficulty for a lone visitor, 16 to 28. A new site has 18.', value: BITS },
  min: { about: 'Lowest difficulty. A new site has 16.', value: BITS },
  max: { about: 'Highest difficulty. A new site has 28.', value: BITS },
  'require-origin': {
    about: 'Refuse requests without an Origin header.',
    contradicts: 'no-require-origin',
  },
  'no-require-origin': { about: 'Allow requests without an Origin header, as a new site does.' },
  allow: { about: 'Address that passes; all others fail. Plan pro.', value: CIDR },
  block: { about: 'Address that always fails. Plan pro.', value: CIDR },
} as const satisfies Record<string, Flag>

/** Only for a site that exists: they empty a list. A list that is given replaces the old one. */
export const CLEARING_FLAGS = {
  'no-origins': { about: 'Allow every origin again.', contradicts: 'origin' },
  'no-allow': { about: 'Empty the allow list.', contradicts: 'allow' },
  'no-block': { about: 'Empty the block list.', contradicts: 'block' },
} as const satisfies Record<string, Flag>

/**
 * The settings after the flags are applied; what no flag names stays as it is.
 *
 * @throws UsageError if the flags do not go together with each other or with what is set
 */
export function applyFlags(before: SiteSettings, input: Input): SiteSettings {
  const plan = (input.text('plan') as SiteSettings['plan'] | undefined) ?? before.plan
  if (plan !== 'pro' && (input.has('allow') || input.has('block'))) {
    throw new UsageError(`--allow, --block: expected --plan pro; plan ${plan} has no IP rules`)
  }
  return {
    name: input.text('name')?.trim() ?? before.name,
    active: before.active,
    plan,
    origins: list(input, 'origin', 'no-origins', before.origins),
    requireOrigin: input.has('require-origin') || (before.requireOrigin && !input.has('no-require-origin')),
    threshold: number(input, 'threshold', before.threshold),
    difficulty: difficulty(input, before.difficulty),
    ipRules: {
      allow: list(input, 'allow', 'no-allow', before.ipRules.allow),
      block: list(input, 'block', 'no-block', before.ipRules.block),
    },
  }
}

function list(input: Input, flag: string, clearingFlag: string, before: string[]): string[] {
  if (input.has(clearingFlag)) return []
  return [...new Set(input.texts(flag) ?? before)]
}

function number(input: Input, flag: string, before: number): number {
  const text = input.text(flag)
  return text === undefined ? before : Number(text)
}

function difficulty(input: Input, before: SiteSettings['difficulty']): SiteSettings['difficulty'] {
  const base = number(input, 'base', before.base)
  const min = number(input, 'min', before.min)
  const max = number(input, 'max', before.max)
  if (min > base || base > max) {
    throw new UsageError(`--min, --base, --max: expected min <= base <= max, got ${min}, ${base}, ${max}`)
  }
  return { base, min, max }
}

/** Names are printed to terminals, so they hold no control characters. */
function isName(text: string): boolean {
  const length = text.trim().length
  return length >= 1 && length <= NAME_CHARACTERS_MAX && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)
}

function isScore(text: string): boolean {
  return /^\d*\.?\d+$/.test(text) && Number(text) <= 1
}

/** Addresses copied from a browser's address bar have a path, capitals or a default port. */
function nearestOrigin(text: string): string | undefined {
  const address = /^https?:\/\//i.test(text) ? text : `https://${text}`
  if (!URL.canParse(address)) return undefined
  const { origin } = new URL(address)
  return isOriginPattern(origin) ? origin : undefined
}
