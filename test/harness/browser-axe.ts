/** Accessibility of a page in one state, as reported by axe-core. */

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
  /** The part of the page to check, shadow trees included; by default the whole page. */
  readonly selector?: string
  /** Whether to apply rules that no WCAG criterion requires. */
  readonly hasBestPractices?: boolean
}

/**
 * Violations of WCAG 2.2 A and AA that axe-core finds, a line each.
 *
 * @throws Error if there was nothing to check
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
      // axe would wait for an answer of frames into which it was not loaded.
      return axe.run({ include: [include] }, { runOnly, iframes: false })
    },
    [selector, tags] as const,
  )
  if (violations.length + passes.length === 0) throw new Error(`axe found nothing to look at in ${selector}`)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} at ${JSON.stringify(target)}: ${failureSummary}`),
  )
}
