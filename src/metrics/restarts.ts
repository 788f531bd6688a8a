/** Workers that were replaced, by cause. */

/** crash: ended by itself or killed from outside. hang: killed, because it hung. roll: replaced on SIGHUP. */
export const RESTART_CAUSES = ['crash', 'hang', 'roll'] as const

export type RestartCause = (typeof RESTART_CAUSES)[number]

/** Since the start of the primary process. */
export type Restarts = Readonly<Record<RestartCause, number>>
