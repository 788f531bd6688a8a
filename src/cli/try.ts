/**
 * `powgate try`: sends one visitor through a running service, from the challenge to the redeemed token. Also an example for
 * integrators.
 *
 *   browser                  GET /challenge -> solve -> POST /verify -> token
 *   backend of the site      token -> POST /verify-token -> score
 */

import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { isOriginPattern } from '../domain/origin.ts'
import { PLAIN_ENVIRONMENT } from '../domain/score.ts'
import { apiKeyId } from '../domain/site.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN, isNonceText } from '../protocol/proof.ts'
import type { Challenge, RedemptionResult, Solution, VerificationResult } from '../protocol/wire.ts'
import { AdminError } from '../sites/sites.ts'
import type { Command, Input } from './command.ts'
import { printJson, printLine } from './output.ts'
import { callService, DEFAULT_URL, SITE_KEY_FLAG, type Timed, URL_FLAG } from './service-call.ts'
import { JSON_FLAG } from './site-flags.ts'
import { effortText, type Solved, solve } from './solver.ts'

export const TRY_COMMAND: Command = {
  name: 'try',
  about: 'Run the whole flow against a running service: challenge, solving, verification, redemption.',
  positionals: [],
  flags: {
    'site-key': { ...SITE_KEY_FLAG, isRequired: true },
    'api-key': {
      about: 'Secret API key of the site.',
      isRequired: true,
      value: {
        placeholder: 'KEY',
        variable: 'POWGATE_API_KEY',
        expects: 'sk_, 8 letters or digits, _ and 43 characters',
        accepts: text => apiKeyId(text) !== undefined,
        isSecret: true,
      },
    },
    url: URL_FLAG,
    origin: {
      about: 'Origin header to send, for a site that requires one. Default: none.',
      value: {
        placeholder: 'ORIGIN',
        expects: 'an origin such as https://example.com',
        accepts: text => isOriginPattern(text) && !text.includes('*'),
      },
    },
    json: JSON_FLAG,
  },
  example: '--site-key site_0123456789ABCDEFabcdef --api-key sk_k3yId0Xy_<43 characters>',
  run: runTry,
}

async function runTry(input: Input): Promise<void> {
  const url = input.text('url') ?? DEFAULT_URL
  const isJson = input.has('json')
  const origin = input.text('origin')
  const browserHeaders = {
    'X-Site-Key': input.required('site-key'),
    ...(origin === undefined ? {} : { Origin: origin }),
  }

  // In the browser.
  const challenge = await callService<Challenge>(url, {
    method: 'GET',
    path: '/challenge',
    headers: browserHeaders,
  })
  if (!isJson) printStep('GET /challenge', challenge)

  const solved = solve(checkedChallenge(challenge.answer))
  if (!isJson) printSolved(solved)

  const solution: Solution = {
    nonce: challenge.answer.nonce,
    counter: solved.counter,
    solveTimeMs: Math.round(solved.ms),
    fingerprintHash: fingerprint(),
    environment: PLAIN_ENVIRONMENT, // a terminal is no browser, but has nothing to hide either
  }
  const verification = await callService<VerificationResult>(url, {
    method: 'POST',
    path: '/verify',
    headers: browserHeaders,
    body: solution,
  })
  if (!isJson) printStep('POST /verify', verification)
  if (!verification.answer.passed) {
    throw new AdminError('POST /verify did not pass: the score is below the threshold, or IP rules apply')
  }

  // In the site's backend, which got the token with the visitor's form. A real one adds `expectedIp`, the visitor's
  // address as the backend sees it.
  const redemption = await callService<RedemptionResult>(url, {
    method: 'POST',
    path: '/verify-token',
    headers: { Authorization: `Bearer ${input.required('api-key')}` },
    body: { token: verification.answer.token },
  })
  if (!isJson) printStep('POST /verify-token', redemption)
  if (!redemption.answer.success) throw new AdminError('POST /verify-token did not redeem the token')

  if (isJson) printJson({ url, challenge, solved, verification, redemption })
}

/** Checks the answer: another service at this address could demand endless work. */
function checkedChallenge(challenge: Challenge): Challenge {
  const { nonce, difficulty, algorithm } = challenge
  const isOurs =
    typeof nonce === 'string' &&
    isNonceText(nonce) &&
    Number.isInteger(difficulty) &&
    difficulty >= DIFFICULTY_MIN &&
    difficulty <= DIFFICULTY_MAX &&
    algorithm === 'sha256'
  if (!isOurs) throw new AdminError('GET /challenge answered 200 with something that is no challenge')
  return challenge
}

/** The same value for every trial on this machine, as for a returning visitor. */
function fingerprint(): string {
  return createHash('sha256').update(`powgate try on ${hostname()}`).digest('hex')
}

function printStep(call: string, { answer, ms }: Timed<unknown>): void {
  printLine(`${call.padEnd(18)}  ${millisecondsText(ms)}  ${JSON.stringify(answer)}`)
}

function printSolved(solved: Solved): void {
  const { counter, ms } = solved
  printLine(`${'solved'.padEnd(18)}  ${millisecondsText(ms)}  counter ${counter}: ${effortText(solved)}`)
}

function millisecondsText(ms: number): string {
  return `${ms.toFixed(1).padStart(8)} ms`
}
