/**
 * `npm run test:mutants`: Stryker changes src/ in small ways (mutants), and lists those that no test notices (survivors). The usual part of
 * PARTS below, `domain`, has 1,500. `MUTANTS=engine npm run test:mutants -- --mutate src/domain/limits.ts:20-60` takes some lines of another.
 * Survivors that change nothing that anybody sees, and so have no test:
 *
 * - another default where a text does not fit a pattern, or has no port: what follows refuses it either way (isOriginPattern,
 *   publicSuffixOf, matcherOf)
 * - a check that what follows makes too: no set holds undefined (publicSuffixOf), `undefined > 50` is false (reasonsOf), a search
 *   for what may be empty begins at 0 (isForeign), a buffer takes no more than it has room for (readToken)
 * - a short way to the same result: an origin without `*` as its own pattern (OriginList), scores by the usual weights (scoreOf), a key's
 *   field without a value (auditEntry), the first secret tried twice (Keyring.others)
 * - a loop that goes one byte further: the next field is written over that byte, or there is none (Hmac, writeText, mintNonce,
 *   writeMessage, applyKeyStream, AddressTags.#tag)
 * - the encoding of texts that are ASCII: 'latin1' is quicker than UTF-8 (keyring.ts, token.ts)
 * - a cache that is emptied early, or never hit: it costs time alone (page.ts, ReusedBytes, AddressTags.#wideTag)
 * - a record that is loaded though it is cached (redemption, loadCaller), the form of a claim (retryClaim), and the very millisecond at
 *   which a nonce expires (attemptWithNonce), which no test over HTTP can meet, or a first proof comes (renewFirstProof)
 * - what nobody asks for: the name in SITE_DEFAULTS; the site's values in NO_TRAFFIC, by which returning addresses pay, though none
 *   returns while the store is away; a list in a field for yes or no (completed)
 * - what only a failing disk, another user or a power loss shows, and when the file is written anew (sites-file.ts)
 * - a meter that is stored, or looked up, once more (#addProof, #meterOf); the clock that Redis' tests set (run)
 * - words of a RangeError for programmers (keyring.ts, bytes.ts, base62)
 * - a name that only has to parse (isOriginPattern), and white space that only has to part (PUBLIC_SUFFIXES)
 *
 * Survivors that tests of other files notice:
 *
 * - words of site-fields.ts, value-forms.ts (with the origin that a mistaken one suggests), settings and answers: test/cli,
 *   test/sites/export-file.test.ts, test/docs.test.ts
 * - a site's IP rules (compileSite): test/contract/score.ts; unknown fields of a group (withUnknownFields): test/store/site-conformance.ts
 * - `forget` and `livingHosts` (sites-file.ts): test/e2e/privacy.test.ts, test/cli/hosts.test.ts
 * - prices and take-backs, rotated secrets, records' lives, limits of a site: test/contract/settings.test.ts, site-settings.test.ts
 * - test keys: test/contract/test-keys.test.ts; other epochs: test/store/redis-cluster.test.ts, test/e2e/failover.test.ts
 * - what only the log and warnings tell: test/e2e/logs.test.ts, test/process/backends.test.ts
 * - how requests above a limit of 256 share entries: test/store/limits-property.ts bounds the error (addRequest, appended)
 */

const PARTS = {
  /** The rules, which need no store. */
  domain: {
    mutate: [
      'src/domain/*.ts',
      'src/endpoints/backend-counts.ts',
      '!src/domain/{address-log,limits,redemption-window,outcome,endpoint,test-keys}.ts',
    ],
    testFiles: [
      'test/domain/!(price|hashwx)*.test.js',
      'test/{process/backends,metrics/stats,sites/fields,sites/export-file}.test.js',
      'test/domain/{price,hashwx}.test.js', // last, because they take seconds: most mutants are noticed before
    ],
  },
  /** The engine of the embedded store, and the records of domain/ that only a store uses. */
  engine: {
    mutate: [
      'src/store/embedded/{engine,state,snapshot,sites-file}.ts',
      'src/domain/{address-log,limits,redemption-window}.ts',
    ],
    testFiles: ['test/domain/limits.test.js', 'test/store/embedded.test.js'],
    // Tests with these titles wait for other processes.
    skipped: 'one that has crashed is replaced|does not answer is told',
  },
  /** The flows of the endpoints, and what only answers show, under the contract on a service in the test's process. */
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
      // Node.js runs a test if its own name matches or an ancestor's. The first ancestor is called `<root>`.
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
