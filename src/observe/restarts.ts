/** Workers that were replaced, by why. */

/** It ended by itself or was killed from outside; it hung and was killed; its successor took over on SIGHUP. */
export const RESTART_CAUSES = ['crash', 'hang', 'roll'] as const

export type RestartCause = (typeof RESTART_CAUSES)[number]

/** Since the start of the primary. */
export type Restarts = Readonly<Record<RestartCause, number>>
