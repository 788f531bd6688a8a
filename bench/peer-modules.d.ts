/** What is used of the peers, which are not installed where the project is only compiled. */

declare module 'altcha-lib' {
  export interface Challenge {
    readonly parameters: Readonly<Record<string, unknown>>
    readonly signature?: string
  }
  export interface Solution {
    readonly counter: number
    readonly derivedKey: string
  }
  export type DeriveKey = (
    parameters: unknown,
    salt: Uint8Array,
    password: Uint8Array,
  ) => Promise<{ derivedKey: Uint8Array }>
  export function createChallenge(options: {
    readonly algorithm: string
    readonly cost: number
    readonly deriveKey: DeriveKey
    readonly expiresAt: Date
    readonly hmacSignatureSecret: string
  }): Promise<Challenge>
  export function solveChallenge(options: {
    readonly challenge: Challenge
    readonly deriveKey: DeriveKey
    readonly counterStart: number
  }): Promise<Solution | null>
}

declare module 'altcha-lib/algorithms/sha' {
  export const deriveKey: import('altcha-lib').DeriveKey
}

declare module 'altcha-lib/frameworks/shared' {
  export interface Store {
    get(key: string): Promise<unknown>
    set(key: string, value: boolean): Promise<unknown>
    setIfAbsent(key: string, value: boolean): Promise<boolean>
  }
  export function verify(
    payload: string,
    deriveKey: import('altcha-lib').DeriveKey,
    hmacSignatureSecret: string,
    hmacKeySignatureSecret?: string,
    store?: Store,
  ): Promise<{ readonly error: string | null }>
}

declare module '@cap.js/server' {
  export interface ChallengeData {
    readonly challenge: { readonly c: number; readonly s: number; readonly d: number }
    readonly expires: number
  }
  export default class Cap {
    constructor(config: {
      readonly noFSState: boolean
      readonly storage: {
        readonly challenges: {
          store(token: string, data: ChallengeData): Promise<void>
          read(token: string): Promise<ChallengeData | null>
          delete(token: string): Promise<void>
          deleteExpired(): Promise<void>
        }
        readonly tokens: {
          store(key: string, expires: number): Promise<void>
          get(key: string): Promise<number | null>
          delete(key: string): Promise<void>
          deleteExpired(): Promise<void>
        }
      }
    })
    createChallenge(options?: {
      readonly challengeCount?: number
      readonly challengeDifficulty?: number
    }): Promise<ChallengeData & { readonly token?: string }>
    redeemChallenge(solution: {
      readonly token: string
      readonly solutions: readonly number[]
    }): Promise<{ readonly success: boolean; readonly token?: string; readonly expires?: number }>
    validateToken(token: string): Promise<{ readonly success: boolean }>
  }
}

declare module '@cap.js/wasm/browser/cap_wasm.js' {
  export function initSync(options: { module: ArrayBuffer }): unknown
  /** The first counter, from 0 on, for which the hash of salt ++ counter starts with a hexadecimal target. */
  export function solve_pow(salt: string, target: string): bigint
}

declare module 'hash-wasm' {
  export interface IHasher {
    init(): IHasher
    update(data: Uint8Array): IHasher
    digest(output: 'binary'): Uint8Array
  }
  export function createSHA256(): Promise<IHasher>
}
