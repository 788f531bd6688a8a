/**
 * `npm run test:mutants`: Stryker changes src/domain/ in a thousand small ways, and tells which change no test notices.
 * `npm run test:mutants -- --mutate src/domain/token.ts` is one file. `MUTANTS=endpoints` before it is src/endpoints/ under the
 * contract, which starts the built service for each change (npm run -s build), 30 s each: give a file, and TEST_SECTION for a part of the contract.
 *
 * Survivors of origin.ts and score.ts that change nothing that anybody sees, and so have no test:
 * - another default where a text does not fit PATTERN: what follows refuses it either way (17, 46, 87)
 * - a check that what follows makes too: loopback names are told by isLoopback (10), no origin's host is '' (83), no set holds
 *   undefined (48), `undefined > 50` is false (score.ts 105), a search for what may be empty begins at 0 (82)
 * - a short way to the same result: lists without weights of their own, an origin without `*` as its own pattern (63, score.ts 85, 86)
 * - a name that only has to parse (25), and white space that only has to part (42)
 */

const ofEndpoints = process.env.MUTANTS === 'endpoints'

const DOMAIN = {
  mutate: ['src/domain/*.ts'],
  testRunner: 'tap',
  plugins: ['@stryker-mutator/tap-runner'],
  tap: { testFiles: ['test/domain/*.test.ts'], nodeArgs: ['--import', 'tsx', '--test-reporter=tap'] },
}

const ENDPOINTS = {
  mutate: ['src/endpoints/*.ts'],
  testRunner: 'command',
  commandRunner: { command: 'node --import tsx --test-reporter=tap test/contract/contract.test.ts' },
  // The service that the contract starts is the built one.
  buildCommand: 'npm run -s build:service',
}

export default {
  ...(ofEndpoints ? ENDPOINTS : DOMAIN),
  // Stryker would rewrite the paths in it through an interface that TypeScript 7 no longer has.
  tsconfigFile: 'none',
  disableTypeChecks: true,
  concurrency: 2,
  // A busy machine is slow; an endless loop is endless.
  timeoutMS: 20_000,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { logTests: false, allowColor: false },
  tempDirName: '.mutants',
  ignorePatterns: ['bench', 'client', 'data', 'screenshots', 'scripts', 'test/client', 'test/release'],
}
