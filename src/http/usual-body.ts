/**
 * Parses bodies exactly as the widget and most backends write them; undefined for others, which schemas.ts parses. A test
 * ensures that both ways give the same value. Saves 2.0 us of 2.7 at POST /verify, 3.6 of 3.9 at /verify-token.
 */

import { parseAddress } from '../domain/address.ts'
import { isCounter } from '../domain/pow.ts'
import type { Redemption, Solution } from '../protocol/wire.ts'

/** No such body is longer: solutions have up to 350 bytes, redemptions 230. A long body of another form costs nothing here. */
const BYTES_MAX = 512
/** Written out 32 times, the pattern takes 0.13 us less a body than `{32}`, which V8 counts in a loop. */
const HEX_32 = '[0-9a-f]'.repeat(32)
const INTEGER = '(0|[1-9][0-9]*)'
const FLAGS = 'webdriver chromeAbsent swiftShader noPlugins notificationDenied zeroScreen noLanguages'
const ENVIRONMENT = FLAGS.replaceAll(/\w+/g, '"$&":(?:(true)|false)').replaceAll(' ', ',')
const SOLUTION = new RegExp(
  `^\\{"nonce":"(${HEX_32})","counter":${INTEGER},"solveTimeMs":${INTEGER},"fingerprintHash":"(${HEX_32}${HEX_32})","environment":\\{${ENVIRONMENT}\\}\\}$`,
)
/** The characters of a token, then those of an address. Python's json writes the optional spaces. */
const REDEMPTION = /^\{"token": ?"([\w|-]+)"(?:, ?"expectedIp": ?"([\d.:A-Fa-f]+)")?\}$/

/** A solution as src/widget/flow.ts makes it. */
export function usualSolution(bytes: Buffer): Solution | undefined {
  const match = matchOf(SOLUTION, bytes)
  const counter = Number(match?.[2])
  if (match === null || !isCounter(counter)) return undefined
  return {
    nonce: match[1]!,
    counter,
    solveTimeMs: Number(match[3]), // so few digits are never Infinity, which is refused
    fingerprintHash: match[4]!,
    environment: {
      webdriver: match[5] !== undefined,
      chromeAbsent: match[6] !== undefined,
      swiftShader: match[7] !== undefined,
      noPlugins: match[8] !== undefined,
      notificationDenied: match[9] !== undefined,
      zeroScreen: match[10] !== undefined,
      noLanguages: match[11] !== undefined,
    },
  }
}

/** A token, with or without a valid `expectedIp`. */
export function usualRedemption(bytes: Buffer): Redemption | undefined {
  const match = matchOf(REDEMPTION, bytes)
  if (match === null) return undefined
  const [token, expectedIp] = [match[1]!, match[2]]
  if (expectedIp === undefined) return { token }
  return parseAddress(expectedIp) === undefined ? undefined : { token, expectedIp }
}

function matchOf(form: RegExp, bytes: Buffer): RegExpExecArray | null {
  return bytes.length > BYTES_MAX ? null : form.exec(bytes.toString('latin1', 0, bytes.length))
}
