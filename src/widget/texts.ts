/** The element's texts. English is built in; of the other languages (texts/*.json) a visitor loads at most one. */

import type { PowGateTextKey } from './powgate.d.ts'

export const ENGLISH = {
  /** The element's name for assistive technology. */
  label: 'Human verification',
  /** Shown until the form is used, which starts the verification. */
  ready: 'Protected against bots',
  /** Shown in place of `ready` if only the button starts the verification. */
  idle: 'Not verified yet',
  working: 'Verifying…',
  /** Shown after 10, 30, 60 and 90 seconds, then each minute; {s} becomes the time. */
  slow: 'Still verifying after {s}',
  verified: 'Verified',
  expired: 'Verification expired',
  start: 'Verify',
  retry: 'Try again',
  /** The service judged the solution, and did not let the visitor pass. */
  rejected: 'Verification failed',
  /** No answer of the service came, or another program's. */
  network: 'The service cannot be reached',
  /** The service answered that it cannot serve now. */
  unavailable: 'The service is busy',
  setup: 'Not set up correctly',
  /** Shown below `setup`, before the error's code. */
  tell: 'Please tell the site’s owner',
  /** Shown above `online`. */
  offline: 'No internet',
  online: 'Continues when you are back online',
  /** Shown during a wait that the service asked for, because too many requests came from one address. */
  busy: 'Too many requests',
  /** Shown below the reason of a wait; {s} becomes a time ahead (“in 5 seconds”). */
  wait: 'Continues {s}',
  /** Shown below the reason, after Send was pressed. */
  sending: 'Your form is sent right after that',
  /** The browser shows this at the element if the form is submitted too early. */
  required: 'Please wait until verification is finished',
  /** The same if only the button starts the verification; {b} becomes the button's text. */
  press: 'First press “{b}”',
} satisfies Record<PowGateTextKey, string>

export type TextKey = keyof typeof ENGLISH
type Texts = Readonly<Record<TextKey, string>>

export const LANGUAGES = (
  'ar bg bn ca cs da de el es et fa fi fr he hi hr hu id it ja ko lt lv nb nl pl pt ro ru sk sl sr sv th tr uk ur vi ' +
  'zh zh-Hant'
).split(' ')

const RIGHT_TO_LEFT = ['ar', 'he', 'fa', 'ur']

/** Older codes, and languages whose readers understand another one. */
const ALIASES: Record<string, string> = { iw: 'he', in: 'id', no: 'nb', nn: 'nb', bs: 'hr', ms: 'id' }

export interface Language {
  readonly code: string
  readonly direction: 'ltr' | 'rtl'
  readonly texts: Texts
}

export const DEFAULT_LANGUAGE: Language = { code: 'en', direction: 'ltr', texts: ENGLISH }

/** The first language wanted (BCP 47, `de-AT`) that has texts. */
export function languageCode(wanted: readonly string[]): string | undefined {
  const codes = wanted.map(tag => {
    if (/^zh-(hant|tw|hk|mo)\b/i.test(tag)) return 'zh-Hant'
    const code = tag.toLowerCase().split('-')[0]!
    return ALIASES[code] ?? code
  })
  return codes.find(code => code === DEFAULT_LANGUAGE.code || LANGUAGES.includes(code))
}

const COUNT_MAX = 90 // seconds or minutes; more are told in the next larger unit
const UNIT_SECONDS = { second: 1, minute: 60, hour: 3600 }

/**
 * Says a time with the language's digits and plurals, on one line: in seconds up to 90, in minutes up to 90 except 60, else in hours.
 *
 * @param isAhead true for “in 5 seconds”, rounded up lest the visitor come too early; false for “5 seconds”, rounded down
 */
export function durationText({ code }: Language, seconds: number, isAhead: boolean): string {
  const round = isAhead ? Math.ceil : Math.floor
  const isHours = seconds > COUNT_MAX * 60 || round(seconds / 60) === 60
  const unit = seconds <= COUNT_MAX ? 'second' : isHours ? 'hour' : 'minute'
  const count = round(seconds / UNIT_SECONDS[unit])
  const text = isAhead
    ? new Intl.RelativeTimeFormat(code).format(count, unit)
    : new Intl.NumberFormat(code, { style: 'unit', unit, unitDisplay: 'long' }).format(count)
  return text.replace(/ /g, '\u00a0')
}

/** The languages by the URLs of their texts, since a page may have elements of several services. */
const loaded = new Map<string, Language>()

/** English if the texts do not load. */
export async function loadLanguage(code: string, assets: string | undefined): Promise<Language> {
  if (code === DEFAULT_LANGUAGE.code || assets === undefined) return DEFAULT_LANGUAGE
  const url = `${assets}texts-${code}.json`
  const known = loaded.get(url)
  if (known !== undefined) return known
  try {
    const response = await fetch(url, { referrerPolicy: 'no-referrer' })
    if (!response.ok) return DEFAULT_LANGUAGE
    const texts = (await response.json()) as Partial<Texts>
    const direction = RIGHT_TO_LEFT.includes(code) ? 'rtl' : 'ltr'
    const language: Language = { code, direction, texts: { ...ENGLISH, ...texts } }
    loaded.set(url, language)
    return language
  } catch {
    return DEFAULT_LANGUAGE
  }
}
