/** Accessibility of a page in a state, as axe-core sees it. */

import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'

const AXE = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')

const WCAG_22_AA = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly target: unknown; readonly failureSummary?: string }[]
  }[]
  readonly passes: readonly unknown[]
}

interface AxeOptions {
  /** The part of the page to look at, shadow trees included; all of it by default. */
  readonly selector?: string
  /** Also the rules that no WCAG criterion asks for. */
  readonly hasBestPractices?: boolean
}

/**
 * Breaches of WCAG 2.2 A and AA that can be found by a program, a line each.
 *
 * @throws Error if nothing was there to look at
 */
export async function axeViolations(page: Page, options: AxeOptions = {}): Promise<string[]> {
  const { selector = 'html', hasBestPractices = false } = options
  await page.evaluate(AXE)
  const tags = hasBestPractices ? [...WCAG_22_AA, 'best-practice'] : WCAG_22_AA
  const { violations, passes } = await page.evaluate(
    ([include, runOnly]) => {
      const { axe } = globalThis as unknown as {
        axe: { run(context: object, options: object): Promise<AxeResults> }
      }
      // Frames that axe was not put into would be waited for.
      return axe.run({ include: [include] }, { runOnly, iframes: false })
    },
    [selector, tags] as const,
  )
  if (violations.length + passes.length === 0) throw new Error(`axe found nothing to look at in ${selector}`)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} at ${JSON.stringify(target)}: ${failureSummary}`),
  )
}
