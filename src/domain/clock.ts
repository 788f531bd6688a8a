/** How far the clocks of hosts and of the store may be apart. */

/** A host refuses what another issued if that host's clock is ahead by more. */
export const CLOCK_SKEW_MS = 5000

/** The operator is warned above this difference. */
export const CLOCK_WARNING_SECONDS = 1
