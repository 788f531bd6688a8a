/** Which panels there are, in the order of the questions that somebody on call asks. */

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

/** @param choose called with a site key whose numbers are wanted */
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
