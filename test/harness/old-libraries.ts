/** Libraries of old pages, as Debian's packages of these names bring them: they replace much of what browsers have. */
export const OLD_LIBRARIES = {
  /** 1.7.3 */
  prototype: '/usr/share/javascript/prototype/prototype.js',
  /** 1.4.5 */
  mootools: '/usr/share/javascript/mootools/mootools.js',
} as const
