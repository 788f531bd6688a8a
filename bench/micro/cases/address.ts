/** src/domain/address.ts and client-address.ts */

import { BlockList, isIPv4 } from 'node:net'
import {
  type Address,
  AddressSet,
  addressFromBytes,
  formatAddress,
  parseAddress,
} from '../../../src/domain/address.ts'
import { clientAddress } from '../../../test/harness/client-address.ts'
import { type Case, isText, type SyncWork } from '../case.ts'
import { addressKeyOf, socketBytes, type Visit, visits } from '../inputs.ts'

const SOURCE = { area: 'domain/address', source: 'src/domain/address.ts' }
const FORWARDED = { area: 'domain/client-address', source: 'src/domain/client-address.ts' }

function visitsOf(isV4: boolean): Visit[] {
  return visits().filter(({ addressText }) => isIPv4(addressText) === isV4)
}

function overVisits(all: readonly Visit[], judge: (visit: Visit) => number): SyncWork {
  return { kind: 'sync', count: all.length, step: index => judge(all[index]!) }
}

const isParsed = ({ addressText, address }: Visit) => (parseAddress(addressText) === address ? 1 : 0)

const V4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/

function naiveV4(text: string): Buffer | undefined {
  const octets = V4.exec(text)?.slice(1).map(Number)
  return octets?.every(octet => octet < 256) ? Buffer.from(octets) : undefined
}

/** As keys of counters are made of IPv6 text: the first four groups. */
function naiveV6Key(text: string): string {
  const [head = '', tail = ''] = text.split('::')
  const groups = head.split(':')
  const tailGroups = tail === '' ? [] : tail.split(':')
  while (groups.length + tailGroups.length < 8) groups.push('0')
  return [...groups, ...tailGroups].slice(0, 4).join(':')
}

const PROXY = '10.0.0.1'
const TRUSTED = new AddressSet(['10.0.0.0/8', 'fd00::/8'])
const NAIVE_TRUSTED = new BlockList()
NAIVE_TRUSTED.addSubnet('10.0.0.0', 8, 'ipv4')
NAIVE_TRUSTED.addSubnet('fd00::', 8, 'ipv6')

/** Each header, and the visit it must lead to. */
interface Forwarded {
  readonly header: string
  readonly visit: Visit
}

function forwarded(before: string, after: string): Forwarded[] {
  return visits().map(visit => ({ header: before + visit.addressText + after, visit }))
}

function walk(inputs: readonly Forwarded[]): SyncWork {
  const peer: Address = parseAddress(PROXY)!
  const step = (index: number) => {
    const { header, visit } = inputs[index]!
    return clientAddress(peer, header, TRUSTED) === visit.address ? 1 : 0
  }
  return { kind: 'sync', count: inputs.length, step }
}

function naiveWalk(inputs: readonly Forwarded[]): SyncWork {
  const step = (index: number) => {
    const { header, visit } = inputs[index]!
    const hops = header.split(',').map(hop => hop.trim())
    const isTrusted = (hop: string) => NAIVE_TRUSTED.check(hop, isIPv4(hop) ? 'ipv4' : 'ipv6')
    return hops.reverse().find(hop => !isTrusted(hop)) === visit.addressText ? 1 : 0
  }
  return { kind: 'sync', count: inputs.length, step }
}

const THREE_PROXIES = ['198.51.100.9, ', ', 10.1.2.3, 10.4.5.6'] as const
const naiveNote = 'split, trim, net.BlockList'

export const ADDRESS_CASES: readonly Case[] = [
  {
    name: 'parse an IPv4 address',
    ...SOURCE,
    step: () => overVisits(visitsOf(true), isParsed),
    naive: () =>
      overVisits(visitsOf(true), ({ addressText }) => (naiveV4(addressText) === undefined ? 0 : 1)),
    naiveNote: 'a regular expression, to a buffer',
  },
  { name: 'parse an IPv6 address', ...SOURCE, step: () => overVisits(visitsOf(false), isParsed) },
  {
    name: 'address of a socket',
    ...SOURCE,
    step: () => {
      const all = visits().map(({ addressText, address }) => ({
        bytes: socketBytes(address, isIPv4(addressText)),
        address,
      }))
      const step = (index: number) => {
        const { bytes, address } = all[index]!
        return addressFromBytes(bytes) === address ? 1 : 0
      }
      return { kind: 'sync', count: all.length, step }
    },
  },
  {
    name: 'text of an address',
    ...SOURCE,
    step: () => overVisits(visits(), ({ address }) => isText(formatAddress(address))),
  },
  {
    name: 'limit key, IPv4',
    ...SOURCE,
    step: () => overVisits(visitsOf(true), ({ address }) => isText(addressKeyOf(address))),
  },
  {
    name: 'limit key, IPv6 /64',
    ...SOURCE,
    step: () => overVisits(visitsOf(false), ({ address }) => isText(addressKeyOf(address))),
    naive: () => overVisits(visitsOf(false), ({ addressText }) => isText(naiveV6Key(addressText))),
    naiveNote: 'text split at colons; two spellings of a network are two keys',
  },
  {
    name: 'X-Forwarded-For, one proxy',
    ...FORWARDED,
    step: () => walk(forwarded('', '')),
    naive: () => naiveWalk(forwarded('', '')),
    naiveNote,
  },
  {
    name: 'X-Forwarded-For, three proxies',
    ...FORWARDED,
    step: () => walk(forwarded(...THREE_PROXIES)),
    naive: () => naiveWalk(forwarded(...THREE_PROXIES)),
    naiveNote,
  },
]
