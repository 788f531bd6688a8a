/** A load of visitors in a process of its own, so that its CPU time is counted apart. This file is that process's entry too. */

import { carryOut, OrderProcess } from '../processes.ts'
import { VisitorLoad, type VisitorsResult, type VisitorsSpec } from './visitors.ts'

const ROLE = 'load'

export class LoadProcess extends OrderProcess<VisitorsSpec> {
  constructor() {
    super(new URL(import.meta.url), [ROLE])
  }

  /** Lets visitors come as the order says, each from challenge to redemption, and resolves with what was measured. */
  visit(spec: VisitorsSpec): Promise<VisitorsResult> {
    return this.ask(spec)
  }
}

if (process.argv[2] === ROLE && process.send !== undefined)
  carryOut((spec: VisitorsSpec) => new VisitorLoad(spec).visit(spec))
