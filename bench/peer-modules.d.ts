/** What is used of the peers, which are not installed where the project is only compiled. */

declare module 'altcha-lib' {
  export function solveChallenge(options: {
    readonly challenge: unknown
    readonly deriveKey: unknown
    readonly counterStart: number
  }): Promise<{ readonly counter: number; readonly derivedKey: string } | null>
}

declare module 'altcha-lib/algorithms/sha' {
  export const deriveKey: unknown
}

declare module '@cap.js/wasm/browser/cap_wasm.js' {
  export function initSync(options: { module: ArrayBuffer }): unknown
  /** The first counter, from 0 on, for which the hash of salt ++ counter starts with a hexadecimal target. */
  export function solve_pow(salt: string, target: string): bigint
}
