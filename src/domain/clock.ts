/** A host refuses what another host issued if the other's clock is ahead by more. */
export const CLOCK_SKEW_MS = 5000
/** The operator is warned if the clocks of a host and of the store are further apart. */
export const CLOCK_WARNING_SECONDS = 1
