/**
 * The steps of the verify path, built from the modules of one tree. Each step makes its own inputs, because formats may
 * differ between trees. Each step also checks its results: a module whose arguments have changed must not look fast.
 */

export interface Step {
  run(): unknown
  isRight(result: unknown): boolean
}

/** Loads a module of the tree by its path below src/. */
export type LoadModule = <Module>(path: string) => Promise<Module>

const SITE_KEY = 'site_0123456789ABCDEFabcdef'
const SECRET = 'a secret for the bench, long enough to be accepted'
const TERMS = { issuedAtMs: Date.UTC(2026, 0, 1), difficulty: 0 }
const LATEST_MS = TERMS.issuedAtMs + 5000
const COUNTER = 180_227
const RANDOM_BITS = 5
const STORE_EPOCH = 7
const LIFETIMES = { challengeLifetimeMs: 120_000, tokenLifetimeMs: 300_000 }
const SCORE = 0.9
const JSON_TYPE = 'application/json'
const SIGNALS = {
  environment: { webdriver: false },
  solveTimeMs: 140,
  elapsedMs: 200,
  difficulty: 18,
  fingerprintAddresses: 1,
  addressFailures: 0,
}

/** Throws if the tree lacks a module or a function. */
export const STEPS: Readonly<Record<string, (load: LoadModule) => Promise<Step>>> = {
  'parse and validate a body': async load => {
    const { parseSolution } = await solutions(load)
    const { nonce } = await nonces(load)
    const bytes = solutionBytes(nonce)
    return {
      run: () => parseSolution(bytes, JSON_TYPE),
      isRight: result => {
        const parsed = result as ReturnType<typeof parseSolution>
        return parsed.ok && parsed.body.nonce === nonce && parsed.body.counter === COUNTER
      },
    }
  },
  'mint a nonce': async load => {
    const { keyring, binding, mintNonce, readNonce } = await nonces(load)
    return {
      run: () => mintNonce(keyring, TERMS, binding, RANDOM_BITS),
      isRight: result => isReadingGenuine(readNonce(keyring, result as string, binding, LATEST_MS)),
    }
  },
  'read a nonce': async load => {
    const { keyring, binding, nonce, readNonce } = await nonces(load)
    return { run: () => readNonce(keyring, nonce, binding, LATEST_MS), isRight: isReadingGenuine }
  },
  'proof check': async load => {
    const { nonce } = await nonces(load)
    const { checkProof } = await proofs(load)
    // Any digest has 0 zero bits and hardly any has 40, so that both answers are tried.
    const isDiscerning = checkProof(nonce, COUNTER, 0) === true && checkProof(nonce, COUNTER, 40) === false
    return { run: () => checkProof(nonce, COUNTER, 0), isRight: result => isDiscerning && result === true }
  },
  score: async load => {
    const { scoreOf } = await scores(load)
    return { run: () => scoreOf(SIGNALS), isRight: isScore }
  },
  'mint a token': async load => {
    const { keyring, claims, mintToken, readToken } = await tokens(load)
    return {
      run: () => mintToken(keyring, claims),
      isRight: result => isTokenGenuine(readToken(keyring, result as string)),
    }
  },
  'read a token': async load => {
    const { keyring, claims, mintToken, readToken } = await tokens(load)
    const token = mintToken(keyring, claims)
    return { run: () => readToken(keyring, token), isRight: isTokenGenuine }
  },
  'whole verification, no store': wholeVerification,
}

async function wholeVerification(load: LoadModule): Promise<Step> {
  const { parseSolution } = await solutions(load)
  const { nonce, readNonce, binding } = await nonces(load)
  const { checkProof } = await proofs(load)
  const { scoreOf } = await scores(load)
  const { keyring, claims, mintToken, readToken } = await tokens(load)
  const bytes = solutionBytes(nonce)
  return {
    run: () => {
      const parsed = parseSolution(bytes, JSON_TYPE)
      if (!parsed.ok) return undefined
      const { body } = parsed
      const reading = readNonce(keyring, body.nonce, binding, LATEST_MS)
      if (reading.status !== 'genuine' || !checkProof(body.nonce, body.counter, reading.difficulty))
        return undefined
      return mintToken(keyring, { ...claims, score: scoreOf(SIGNALS).score })
    },
    isRight: result => isTokenGenuine(readToken(keyring, String(result))),
  }
}

const solutions = (load: LoadModule) => load<typeof import('../../src/http/schemas.ts')>('http/schemas.ts')
const proofs = (load: LoadModule) => load<typeof import('../../src/domain/pow.ts')>('domain/pow.ts')
const scores = (load: LoadModule) => load<typeof import('../../src/domain/score.ts')>('domain/score.ts')

async function nonces(load: LoadModule) {
  const { Keyring } = await load<typeof import('../../src/domain/keyring.ts')>('domain/keyring.ts')
  const { parseAddress } = await load<typeof import('../../src/domain/address.ts')>('domain/address.ts')
  const { mintNonce, readNonce } = await load<typeof import('../../src/domain/nonce.ts')>('domain/nonce.ts')
  const keyring = new Keyring([SECRET])
  const address = parseAddress('203.0.113.7')!
  const binding = { siteKey: SITE_KEY, storeEpoch: STORE_EPOCH, lifetimes: LIFETIMES, address }
  return { keyring, binding, mintNonce, readNonce, nonce: mintNonce(keyring, TERMS, binding, RANDOM_BITS) }
}

async function tokens(load: LoadModule) {
  const { keyring, binding, nonce } = await nonces(load)
  const { mintToken, readToken } = await load<typeof import('../../src/domain/token.ts')>('domain/token.ts')
  const { issuedAtMs } = TERMS
  const { address, storeEpoch } = binding
  const claims = {
    issuedAtMs,
    lifetimes: LIFETIMES,
    nonce,
    counter: COUNTER,
    siteTag: '0123456789',
    address,
    score: SCORE,
    storeEpoch,
  }
  return { keyring, claims, mintToken, readToken }
}

function solutionBytes(nonce: string): Buffer {
  const fingerprintHash = 'ab'.repeat(32)
  const flags = ['webdriver', 'chromeAbsent', 'swiftShader', 'noPlugins', 'notificationDenied', 'zeroScreen']
  const environment = Object.fromEntries([...flags, 'noLanguages'].map(flag => [flag, false]))
  return Buffer.from(
    JSON.stringify({ nonce, counter: COUNTER, solveTimeMs: 140, fingerprintHash, environment }),
  )
}

function isReadingGenuine(result: unknown): boolean {
  const { status, difficulty, issuedAtMs } = result as Record<string, unknown>
  return status === 'genuine' && difficulty === TERMS.difficulty && issuedAtMs === TERMS.issuedAtMs
}

function isTokenGenuine(result: unknown): boolean {
  const { status, claims } = result as { status: string; claims?: { counter: unknown; issuedAtMs: unknown } }
  return status === 'genuine' && claims?.counter === COUNTER && claims.issuedAtMs === TERMS.issuedAtMs
}

function isScore(result: unknown): boolean {
  const { score } = result as { score: unknown }
  return typeof score === 'number' && score > 0 && score <= 1
}
