import {
  ownerKey,
  windowOfJunk,
  windowOfKnown,
  windowOfRefused,
  windowOfSite,
} from '../domain/address-tags.ts'

/** Every name that an address may have in a store: its logs and windows, and its network's meter. @param key of the address */
export function namesOfAddress(key: string, siteKeys: readonly string[]): readonly string[] {
  const logs = [key, ...siteKeys.map(siteKey => windowOfKnown(key, siteKey))]
  const windows = [key, windowOfRefused(key), ...siteKeys.map(siteKey => windowOfSite(key, siteKey))]
  return [
    `e:${ownerKey(key)}`,
    ...logs.flatMap(log => [log, windowOfRefused(log), windowOfJunk(log)].map(window => `l:${window}`)),
    ...windows.flatMap(window => [window, windowOfJunk(window)].map(one => `c:${one}`)),
  ]
}
