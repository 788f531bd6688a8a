/** FNV-1a, 32 bits, to spread keys evenly; never for secrets. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  // The low bits of FNV are its weakest.
  return (hash ^ (hash >>> 15)) >>> 0
}
