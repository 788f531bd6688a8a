/**
 * Parses the part of HTTP/1.1 that the load generator needs: answers with a Content-Length, as uWebSockets.js writes them.
 */

const HEAD_END = Buffer.from('\r\n\r\n')
const CONTENT_LENGTH = Buffer.from('\r\nContent-Length: ')
/** Where the status is in "HTTP/1.1 200 OK". */
const STATUS_OFFSET = 9
const [DIGIT_0, DIGIT_2, CARRIAGE_RETURN] = [0x30, 0x32, 0x0d]

/**
 * How long the answer at the start of `bytes` is, or undefined if its head is not complete. An answer without a length
 * is as long as its head.
 *
 * @param length how many of the bytes count; what lies behind is left over from earlier answers
 */
export function answerLength(bytes: Buffer, length: number): number | undefined {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd < 0 || headEnd + HEAD_END.length > length) return undefined
  const field = bytes.indexOf(CONTENT_LENGTH)
  let bodyLength = 0
  if (field >= 0 && field < headEnd) {
    for (let at = field + CONTENT_LENGTH.length; bytes[at] !== CARRIAGE_RETURN; at++) {
      bodyLength = bodyLength * 10 + bytes[at]! - DIGIT_0
    }
  }
  return headEnd + HEAD_END.length + bodyLength
}

/** Whether a whole answer has status 200 and contains the marker. */
export function isGoodAnswer(bytes: Buffer, length: number, marker: Buffer): boolean {
  if (bytes[STATUS_OFFSET] !== DIGIT_2) return false
  if (bytes[STATUS_OFFSET + 1] !== DIGIT_0 || bytes[STATUS_OFFSET + 2] !== DIGIT_0) return false
  const at = bytes.indexOf(marker)
  return at >= 0 && at + marker.length <= length
}
