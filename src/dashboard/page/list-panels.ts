/** Panels that rank by count: reasons of refusals, reasons of failed verifications, sites, and limits that refused. */

import type { Policy } from '../../domain/limits.ts'
import {
  JUDGEMENT_WORDS,
  LIMIT_WORDS,
  REFUSAL_WORDS,
  type ReasonWords,
  textOf,
} from '../../domain/reason-words.ts'
import { OTHER_SITES } from '../../metrics/history-view.ts'
import { BarList } from './bar-list.ts'
import { type PagePart, Panel } from './panel.ts'
import { sum } from './sum.ts'

export function refusalPanel(): PagePart {
  const list = new BarList('Nothing was refused.', by(REFUSAL_WORDS))
  const about = 'by reason: count, share of refusals, and when'
  const panel = new Panel({ title: 'Why requests were refused', about }, [list.element], false)
  return {
    element: panel.element,
    update: ({ traffic: { refusals, refused } }, frame) => list.update(refusals, sum(refused), frame),
  }
}

export function reasonPanel(): PagePart {
  const list = new BarList('No verification failed or lost score.', by(JUDGEMENT_WORDS))
  const about = 'by reason: count, share of verifications, and when'
  const panel = new Panel({ title: 'Why verifications failed or lost score', about }, [list.element], false)
  return {
    element: panel.element,
    update: ({ traffic: { failureReasons, passed, failed } }, frame) =>
      list.update(failureReasons, sum(passed) + sum(failed), frame),
  }
}

export function sitePanel(choose: (siteKey: string) => void): PagePart {
  const names = new Map<string, string>()
  const nameOf = (siteKey: string) =>
    siteKey === OTHER_SITES ? 'Other sites' : (names.get(siteKey) ?? siteKey)
  const explain = (siteKey: string) => ({
    title: nameOf(siteKey),
    text:
      siteKey === OTHER_SITES
        ? 'All that have no row of their own'
        : nameOf(siteKey) === siteKey
          ? ''
          : siteKey,
  })
  const list = new BarList('No site was asked for.', explain, choose)
  const about = 'requests, share of all sites, and when'
  const panel = new Panel({ title: 'Busiest sites', about, isOfAllSites: true }, [list.element], false)
  return {
    element: panel.element,
    update({ sites, busiest, site }, frame) {
      for (const { siteKey, name } of sites) names.set(siteKey, name)
      list.update(
        busiest,
        sites.reduce((total, { requests }) => total + requests, 0),
        frame,
      )
      panel.update(site !== null)
    },
  }
}

export function limitPanel(): PagePart {
  const list = new BarList('No limit was hit.', explainLimit)
  const about = 'requests refused with 429, and when'
  const panel = new Panel({ title: 'Limits hit', about, isOfAllSites: true }, [list.element], false)
  return {
    element: panel.element,
    update({ limits, site }, frame) {
      list.update(
        limits,
        limits.reduce((total, limit) => total + limit.total, 0),
        frame,
      )
      panel.update(site !== null)
    },
  }
}

/** Reasons may be unknown here: a worker may run newer code than this page. */
function by(words: Readonly<Record<string, ReasonWords>>) {
  return (name: string) => explained(name, words[name])
}

/** @param name `<endpoint> <policy>` */
function explainLimit(name: string) {
  const [endpoint = '', policy = ''] = name.split(' ')
  const title = `/${endpoint} per ${policy.replace('address-site', 'address and site').replace('api-key', 'API key')}`
  return explained(title, LIMIT_WORDS[endpoint]?.[policy as Policy])
}

function explained(title: string, words: ReasonWords | undefined) {
  return { title, text: words === undefined ? '' : textOf(words) }
}
