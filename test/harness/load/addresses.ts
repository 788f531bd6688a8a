/**
 * Addresses of visitors, as those of people lie: 60 % IPv4 in 40,000 /24 networks, 40 % IPv6 in 60,000 /48 networks of 3,750
 * providers. All are public, because networks of the operator's own are not counted. No other traffic of the suite has them.
 */

export const ADDRESSES_MAX = 2 ** 24

const [V4_NETWORKS, V6_NETWORKS] = [40_000, 60_000]
/** A prime that divides neither, so that visitors who follow each other have networks far apart, and each network has its turn. */
const SPREAD = 17_389
/** The first /24 is 11.0.0.0, and each lies 37 after the one before, so seven lie in a /16. */
const [V4_FIRST, V4_APART] = [11 << 16, 37]

/** @param visitor 0 to below ADDRESSES_MAX, each with an address of its own; IPv6 is in canonical text */
export function visitorAddress(visitor: number): string {
  const [five, rest] = [Math.floor(visitor / 5), visitor % 5] // of each five visitors, three have IPv4
  if (rest < 3) {
    const number = five * 3 + rest
    const network = V4_FIRST + ((number * SPREAD) % V4_NETWORKS) * V4_APART
    return `${network >> 16}.${(network >> 8) & 0xff}.${network & 0xff}.${Math.floor(number / V4_NETWORKS)}`
  }
  const number = five * 2 + rest - 3
  const network = (number * SPREAD) % V6_NETWORKS
  const [provider, customer, subnet] = [network >> 4, network & 15, Math.floor(number / V6_NETWORKS)]
  const groups = [provider, customer, subnet]
  return `2a00:${groups.map(group => (group + 1).toString(16)).join(':')}::1` // a group of 0 would be no canonical text
}
