/** The list of all panels, in the order in which a person on call needs them. */

import type { Cursor } from './cursor.ts'
import { limitPanel, reasonPanel, refusalPanel, sitePanel } from './list-panels.ts'
import { latencyPanel, storePanel, workerPanel } from './machine-panels.ts'
import type { PagePart } from './panel.ts'
import {
  difficultyPanel,
  funnelPanel,
  scorePanel,
  trafficPanel,
  verificationPanel,
} from './traffic-panels.ts'

/** @param choose called with the key of a site that the viewer clicks */
export function makePanels(cursor: Cursor, choose: (siteKey: string) => void): PagePart[] {
  return [
    funnelPanel(),
    trafficPanel(cursor),
    verificationPanel(cursor),
    refusalPanel(),
    reasonPanel(),
    sitePanel(choose),
    limitPanel(),
    scorePanel(),
    difficultyPanel(cursor),
    latencyPanel(cursor),
    storePanel(cursor),
    workerPanel(cursor),
  ]
}
