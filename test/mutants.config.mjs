/**
 * `npm run test:mutants`: Stryker changes src/domain/ in 1,500 small ways, and tells which change no test notices. `MUTANTS=engine`
 * before it is the engine of the embedded store and the records of domain/ that only a store uses, `MUTANTS=endpoints` src/endpoints/
 * and what only answers show, under the contract on a service in the test's process. `-- --mutate src/domain/token.ts` is one file,
 * `token.ts:80-120` some lines of it.
 *
 * Survivors that change nothing that anybody sees, and so have no test:
 * - another default where a text does not fit a pattern: what follows refuses it either way (origin.ts 17, 46, 87)
 * - a check that what follows makes too: loopback names are told by isLoopback (origin.ts 10), no origin's host is '' (83), no set
 *   holds undefined (48), `undefined > 50` is false (score.ts 97), a search for what may be empty begins at 0 (82)
 * - a short way to the same result: lists without weights of their own, an origin without `*` as its own pattern (origin.ts 63,
 *   score.ts 77, 78), the logarithm of an excess below 1, which is below 0 (price.ts 165), a key's field without a value
 *   (audit.ts 70)
 * - a cache that is emptied early, or never hit: it costs time alone (page.ts 77 and 85, bytes.ts 11 and 16, address-tags.ts 85)
 * - a record that is loaded though it is cached (redemption.ts 91, 142), the form of a claim (227), and the very millisecond at which a
 *   nonce expires (verify.ts 210), which no test over HTTP can meet
 * - words for programmers: a RangeError's (keyring.ts 53); those of settings and answers, which test/cli and test/docs.test.ts hold
 * - a name that only has to parse (origin.ts 25), and white space that only has to part (42)
 */

const PARTS = {
  domain: {
    mutate: [
      'src/domain/*.ts',
      'src/endpoints/backend-counts.ts',
      '!src/domain/{address-log,limits,outcome,endpoint,test-keys}.ts',
    ],
    testFiles: [
      'test/domain/!(price|hashwx)*.test.js',
      'test/{process/backends,metrics/stats,sites/fields,sites/sites-file}.test.js',
      'test/domain/{price,hashwx}.test.js', // take seconds
    ],
  },
  engine: {
    mutate: [
      'src/store/embedded/{engine,state,snapshot,sites-file}.ts',
      'src/domain/{address-log,limits}.ts',
    ],
    testFiles: ['test/domain/limits.test.js', 'test/store/embedded.test.js'],
    // They wait for other processes.
    skipped: 'one that has crashed is replaced|does not answer is told',
  },
  endpoints: {
    mutate: ['src/endpoints/!(backend-counts).ts', 'src/domain/{outcome,endpoint,test-keys}.ts'],
    testFiles: ['browsers', 'backends', 'rest'].map(name => `test/contract/mutants/${name}.js`),
  },
}

const { mutate, testFiles, skipped = '<no test>' } = PARTS[process.env.MUTANTS ?? 'domain']

export default {
  mutate,
  testRunner: 'tap',
  plugins: ['@stryker-mutator/tap-runner'],
  tap: {
    testFiles,
    nodeArgs: [
      '--test-force-exit',
      '--test-reporter=tap',
      `--test-name-pattern=/^(?!<root>|.*(${skipped}))/`,
    ],
  },
  // JavaScript beside the sources, once for all mutants: tsx would look at each file again for each.
  buildCommand: 'npm run -s build:mutants',
  // Stryker would rewrite the paths in it through an interface that TypeScript 7 no longer has.
  tsconfigFile: 'none',
  disableTypeChecks: true,
  concurrency: 1,
  // A busy machine is slow; an endless loop is endless.
  timeoutMS: 10_000,
  timeoutFactor: 3,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { logTests: false, allowColor: false },
  tempDirName: '.mutants',
  ignorePatterns: ['/bench', '/client', 'data', 'screenshots', '/scripts', 'test/client', 'test/release'],
}
