/** The plugin of client/wordpress in a real WordPress: forms in Chromium, passed and refused, and what owners get wrong. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, beforeEach, describe, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import type { Page } from 'playwright-core'
import { openBrowser, openPage, type Visit, type VisitOptions } from '../harness/browser.ts'
import { Client } from '../harness/client.ts'
import { type Answer, call } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { EASY, TestService, UNLIMITED } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import { PASSWORD, WordPress } from '../harness/wordpress.ts'

/** A contact form of a theme's own, no mail, a locale by option, comments at once, a note of failed log-ins, deferred scripts. */
const OWN_PLUGIN = `
add_filter('pre_wp_mail', '__return_true');
add_filter('locale', function () { return get_option('test_locale', 'en_US'); });
add_filter('wp_is_comment_flood', '__return_false', 99);
add_action('wp_login_failed', function () { update_option('failed', 1); });
add_action('init', function () {
	if (isset($_POST['contact_message'])) {
		update_option('contacts', wp_unslash($_POST['contact_message']));
		exit('Thank you');
	}
});
add_filter('script_loader_tag', function ($tag) {
	return isset($_GET['defer']) ? str_replace(array(' async', ' src='), array('', ' defer src='), $tag) : $tag;
});`

const MISSING = 'We could not check that you are a person. Please allow JavaScript'
const USED = 'The check that you are a person is no longer valid'
const AWAY = 'Please send the form again in a few minutes'
const SETUP = 'This form is not set up correctly'

const service = await TestService.start('embedded', UNLIMITED)
const wordpress = new WordPress()
await wordpress.start(OWN_PLUGIN)
const site = await service.createSite({ origins: [wordpress.url], difficulty: EASY })
const CONTENT =
  '<form method="post"><textarea name="contact_message"></textarea>[powgate]<button>Send</button></form>'
const contactPage: string = wordpress.php(`
  kses_remove_filters();
  foreach (array('users_can_register' => 1, 'comment_previously_approved' => 0, 'require_name_email' => 0) as $name => $value)
    update_option($name, $value);
  $page = array('post_type' => 'page', 'post_status' => 'publish', 'post_title' => 'Contact');
  return '/?page_id=' . wp_insert_post($page + array('post_content' => '<!-- wp:html -->${CONTENT}<!-- /wp:html -->'));`)

/** The boxes of the settings page that are ticked, unless a test says otherwise. */
const ON = ['comments', 'login', 'register', 'lostpassword']

/** Stores the settings as their page does: the usual ones, with these changes. */
function configure(changes: Readonly<Record<string, unknown>> = {}): void {
  const { api_key = site.apiKey, ...others } = changes
  const settings = {
    url: service.url,
    site_key: site.siteKey,
    has_key: true,
    on: ON,
    fields: 'contact_message',
    header: 'X-Forwarded-For',
    ...others,
  }
  wordpress.php(`
    update_option('powgate', json_decode('${JSON.stringify(settings)}', true));
    update_option('powgate_api_key', '${api_key}', false);`)
}
beforeEach(() => configure()) // whatever the test before has changed

const visit = async (path: string, options: VisitOptions = {}): Promise<Visit> =>
  openPage(await openBrowser(), wordpress.url + path, options)

const verified = (page: Page) =>
  page.waitForFunction("document.querySelector('pow-gate').state === 'verified'", undefined, {
    timeout: 60_000,
  })

interface Form {
  readonly name: string
  readonly path: string
  /** What is typed, by the field's name. */
  readonly typed: Readonly<Record<string, string>>
  /** Hidden or fixed fields, for a script. */
  readonly others?: Readonly<Record<string, string>>
  readonly postTo?: string
  readonly button: string
  /** In the page, or its address, after it has passed. */
  readonly passed: RegExp
  /** Whether it has done its work, by PHP. */
  readonly done: string
}

const FORMS: readonly Form[] = [
  {
    name: 'a comment',
    path: '/?p=1',
    typed: { comment: 'I like this.\nReally, I do.' },
    others: { comment_post_ID: '1', comment_parent: '0' },
    postTo: '/wp-comments-post.php',
    button: '#submit',
    passed: /#comment-\d+/,
    done: "return count(get_comments(array('search' => 'I like this')));",
  },
  {
    name: 'a log-in',
    path: '/wp-login.php',
    typed: { log: 'admin', pwd: PASSWORD },
    button: '#wp-submit',
    passed: /\/wp-admin\//,
    done: "return count(array_filter((array) get_user_meta(1, 'session_tokens', true)));",
  },
  {
    name: 'a registration',
    path: '/wp-login.php?action=register',
    typed: { user_login: 'ada', user_email: 'ada@example.com' },
    button: '#wp-submit',
    passed: /checkemail=registered/,
    done: "return username_exists('ada') ? 1 : 0;",
  },
  {
    name: 'a lost password',
    path: '/wp-login.php?action=lostpassword',
    typed: { user_login: 'admin' },
    button: '#wp-submit',
    passed: /checkemail=confirm/,
    done: "return get_user_by('login', 'admin')->user_activation_key === '' ? 0 : 1;",
  },
  {
    name: 'a form with the shortcode',
    path: contactPage,
    typed: { contact_message: 'Hello from\na person' },
    button: 'form:has(pow-gate) button',
    passed: /Thank you/,
    done: "return get_option('contacts') ? 1 : 0;",
  },
]

async function fill(page: Page, { typed }: Form): Promise<void> {
  for (const [name, text] of Object.entries(typed))
    await page.fill(`form:has(pow-gate) [name="${name}"]`, text)
}

const URLENCODED = 'application/x-www-form-urlencoded'
function post(path: string, body: string, type = URLENCODED, method = 'POST'): Promise<Answer> {
  const headers = { 'Content-Type': type }
  return call(wordpress.url + path, { method, headers, body, isForeign: true })
}

/** As a script that has read the form, but runs none of its scripts. */
function spam({ path, typed, others, postTo }: Form, token?: string): Promise<Answer> {
  const fields = { ...typed, ...others, ...(token === undefined ? {} : { 'powgate-token': token }) }
  return post(postTo ?? path, `${new URLSearchParams(fields)}`)
}

for (const form of FORMS)
  describe(form.name, () => {
    test('is refused from a script without a token, with an invented one, and with JavaScript off', async () => {
      assert.match((await spam(form)).text, new RegExp(MISSING))
      assert.match((await spam(form, '1|2|3|4|5')).text, new RegExp(USED))
      const { page } = await visit(form.path, { javaScriptEnabled: false })
      assert.match(await page.content(), /This form needs JavaScript/)
      await fill(page, form)
      await page.click(form.button)
      assert.ok((await page.innerText('body')).includes(MISSING))
      assert.equal(wordpress.php(form.done), 0)
    })

    test('is refused with a token that was redeemed, keeps what was typed, and then passes', async () => {
      const { page } = await visit(form.path)
      await fill(page, form)
      await verified(page)
      const token = (await page.evaluate("document.querySelector('pow-gate').token")) as string
      await new Client(service.url).verifyToken(site.apiKey, { token })
      await page.click(form.button)
      await page.waitForFunction(`document.body?.innerText.includes('${USED}')`)
      assert.equal(wordpress.php(form.done), 0)
      const { pwd, ...kept } = form.typed
      for (const [name, text] of Object.entries(kept))
        assert.equal(await page.inputValue(`[name="${name}"]`), text)
      if (pwd !== undefined) {
        await verified(page) // by then WordPress' own script has run, which takes the focus and empties the field
        await page.fill('[name="pwd"]', pwd)
      }
      await page.click('form:has(pow-gate) :is(button:not([type="button"]), [type="submit"])')
      await page.waitForFunction(`${form.passed}.test(document.body?.innerText + location.href)`)
      assert.equal(wordpress.php(form.done), 1)
    })
  })

test('without a token a script learns of no account, and no log-in counts as failed', async () => {
  const taken = await post('/wp-login.php?action=register', 'user_login=admin&user_email=admin@example.com')
  const nobody = await post('/wp-login.php?action=lostpassword', 'user_login=nobody@example.com')
  await post('/wp-login.php', 'log=admin&pwd=wrong')
  for (const { text } of [taken, nobody]) {
    assert.ok(text.includes(MISSING))
    assert.doesNotMatch(text, /already registered|no account/)
  }
  assert.equal(wordpress.php("return get_option('failed');"), false)
})

const freshToken = () => new Client(service.url).token(site.siteKey, { headers: { Origin: wordpress.url } })
const asVisitor = async () =>
  `$_SERVER['HTTP_X_FORWARDED_FOR'] = '127.0.0.1'; $_POST['powgate-token'] = '${await freshToken()}';`

const formNamed = (name: string) => FORMS.find(form => form.name === name)!
const [COMMENT, LOGIN] = [formNamed('a comment'), formNamed('a log-in')]
const CONTACT = formNamed('a form with the shortcode')
const comments = () => wordpress.php('return (int) get_comments(array("count" => true));')

async function comment(page: Page, text: string): Promise<void> {
  await page.fill('#comment', text)
  await page.click('#submit')
}

test('a form that a script sends, and that stays, gets a new token', async () => {
  const { page } = await visit(contactPage)
  await fill(page, CONTACT)
  await verified(page)
  const token = await page.evaluate("document.querySelector('pow-gate').token")
  const form = "new FormData(document.querySelector('form:has(pow-gate)'))"
  await page.evaluate(`fetch('', { method: 'POST', body: ${form} })`)
  await page.waitForFunction(`!['${token}', undefined].includes(document.querySelector('pow-gate').token)`)
})

test('a page from a cache has no token, and works for several visitors, with all scripts deferred too', async () => {
  const path = '/?p=1&cached=1&defer=1'
  const answers = [await call(wordpress.url + path), await call(wordpress.url + path)]
  const cached = answers.map(({ headers }) => headers['x-cache'])
  assert.deepEqual(cached, ['MISS', 'HIT'])
  assert.match(answers[1]!.text, /<script[^>]* defer src='?"?[^>]*widget\.js/)
  const count = comments()
  for (const text of ['first of the cached page', 'second of the cached page']) {
    const { page, pageErrors } = await visit(path)
    await comment(page, text)
    await page.waitForURL(/#comment-/)
    assert.deepEqual(pageErrors, [])
  }
  assert.equal(comments(), count + 2)
})

test('the address is the last that the proxy names, without its port', () => {
  const take = `function ($list) { $_SERVER['HTTP_X_FORWARDED_FOR'] = $list; return powgate_address(); }`
  const seen = wordpress.php(`return array_map(${take}, array('2.2.2.2, 1.2.3.4:5', '[::1]:5', '::1:5'));`)
  assert.deepEqual(seen, ['1.2.3.4', '::1', '::1:5'])
})

test('a redemption waits a second for its connection, also where PHP has no curl, and no other call is hurried', () => {
  const waits = wordpress.php(`
    $waits = array();
    add_action('requests-requests.before_request', function ($url, $headers, $data, $type, $options) use (&$waits) {
      $waits[] = $options['connect_timeout'];
    }, 11, 5);
    powgate_redeem('-', null);
    wp_remote_get('${wordpress.url}');
    return $waits;`)
  assert.deepEqual(waits, [1, 10])
})

test('Contact Form 7: the element stands before the last paragraph above the button, in no icon', () => {
  const form = '<p>a <svg><path d=""/></svg> <input class="wpcf7-submit"></p>'
  assert.equal(wordpress.php(`return strpos(powgate_cf7_field('${form}'), '<div');`), 0)
})

/** @param pays a form with a payment by Stripe @param endsEarly Stripe ends the request within the hook, because a bank asks the payer */
const checkWpforms = (pays: boolean, endsEarly: boolean) => `
    function wpforms() { static $all; return $all = $all ?? (object) array('process' => (object) array('errors' => array())); }
    $form = array('id' => 7, 'payments' => array('stripe' => array('enable_one_time' => ${pays})));
    $entry = array($call === 'early' ? 'payment_method_id' : 'payment_intent_id' => 'x'); // the second once a bank has asked
    if (${endsEarly}) { powgate_wpforms_check(array(), $entry, $form); return !wpforms()->process->errors; }
    add_action('wpforms_process', 'powgate_wpforms_check', 5, 3);
    do_action('wpforms_process', array(), $entry, $form);
    return !wpforms()->process->errors;`

/** An early call passes three times more (powgate_verify_early), and then the send that it was for. */
const EARLY_CALLS = 'early+ early+ early+ early+ early-'
/** Calls with one token, whether each passes (+ or -), and PHP that makes one of the kind `$call`. Early calls test a form sent later. */
const ONE_TOKEN: Readonly<Record<string, readonly [calls: string, php: string]>> = {
  "WooCommerce, PayPal's button": [
    `${EARLY_CALLS} send+ send-`,
    `if ($call === 'send') do_action('woocommerce_checkout_process');
    powgate_check_checkout(array(), $errors = new WP_Error()); return !$errors->has_errors();`,
  ],
  'WPForms, a bank asks': ['early+ early- send+ send-', checkWpforms(true, true)],
  'WPForms, no bank asks': ['early+ send-', checkWpforms(true, false)],
  'WPForms without a payment': ['early+ send-', checkWpforms(false, true)],
  'Gravity Forms, "Save and continue"': [
    'save+ save-',
    `$_POST['gform_save'] = '1'; powgate_gravity_save(array('id' => 5));
    return '1' === $_POST['gform_save'] || powgate_gravity_check(array('is_valid' => true, 'form' => array('id' => 5)))['is_valid'];`,
  ],
  'Gravity Forms, Stripe, "Next" to a page': [
    `page+ ${EARLY_CALLS} page+ send+ send-`,
    `class GFFormDisplay { static $target; static function is_last_page($form) { return self::$target === 0; } }
    GFFormDisplay::$target = $call === 'page' ? 2 : 0;
    return powgate_gravity_check(array('is_valid' => true, 'form' => array('id' => 5)), $call === 'early' ? 'api-validate' : 'form-submit')['is_valid'];`,
  ],
}

for (const [name, [calls, php]] of Object.entries(ONE_TOKEN))
  test(`${name}: a token passes once, and once more only if the first call took nothing`, async () => {
    const visitor = await asVisitor()
    for (const [index, call] of words(calls).entries()) {
      const passed = wordpress.php(`${visitor} $call = '${call.slice(0, -1)}'; ${php}`)
      assert.equal(passed, call.endsWith('+'), `call ${index}: ${call}`)
    }
  })

test('of early calls at once, no more than three pass, and then the send', async () => {
  const visitor = await asVisitor()
  const early = `${visitor} return true === powgate_verify_early('a form');`
  assert.equal(wordpress.php(early), true)
  const passed = wordpress.php(`
    $start = microtime(true) + 0.2; // each process has a connection of its own by then
    for ($calls = 0; $calls < 9; $calls++) if (!pcntl_fork()) {
      $GLOBALS['wpdb']->db_connect();
      time_sleep_until($start);
      exit((int) (function () { ${early} })());
    }
    for ($passed = 0; pcntl_wait($status) > 0;) $passed += pcntl_wexitstatus($status);
    return $passed;`)
  assert.equal(passed, 3)
  assert.equal(wordpress.php(`${visitor} return true === powgate_verify_noted('a form');`), true)
})

test('Gravity Forms: "Next" waits for a token for 3 s, "Submit" and "Save" until it is there', () => {
  // The script of the page, in a page of stand-ins that log what it calls. No token ever comes.
  const log = runInNewContext(`
    const form = { querySelector: () => ({ execute: () => log.push('waits') && new Promise(() => {}) }) }
    let filter, log = [], setTimeout = (_, ms) => log.push(ms), document = { addEventListener() {} }
    const window = { addEventListener: (_, run) => run(), gform: { utils: { addAsyncFilter: (_, made) => (filter = made) } } }
    ${readFileSync('client/wordpress/powgate/assets/page.js', 'utf8')}
    const types = ['submit', 'save-continue', 'previous', 'next']
    for (const submissionType of types) log.push(submissionType) && filter({ submissionType, form })
    log.join(' ')`)
  assert.equal(log, 'submit waits save-continue waits previous next waits 3000')
})

test('a rule finds its field where PHP puts it, and a value as its handler may take it', async () => {
  const rules = words('form_fields[name] my.field items[] id=5 form=contact type=0').join('\n')
  configure({ fields: `${rules}\r\n\n topic = Contact us \r\n内容` })
  const isAsked = async (...sent: Parameters<typeof post>) => (await post(...sent)).text.includes(MISSING)
  // Each has a rule's field, in the body or in the query, with a value that a handler may take for the rule's (powgate_is_like).
  const matching = 'form_fields[name]=A my.field=1 items[7]=1 id=-05 id[]=5 form=Contact+ form=contact! type='
  const moreMatching = 'topic=Contact+us 内容=1 data=a%3D1%26form_fields%255Bname%255D%3DA'
  for (const fields of words(matching, moreMatching))
    assert.deepEqual([await isAsked('/', fields), await isAsked(`/?${fields}`, 'id=9')], [true, true], fields)
  const others = 'form_fields[mail]=a my=1 item=1 id=6 id=1e1000 form=contacts type=a us=1 data[]=id%3D5'
  for (const fields of words(others)) assert.equal(await isAsked('/', fields), false, fields)
  // With a token nobody is asked, wherever it stands: in a form that a script packed into `data`, in the query, in JSON.
  const packed = new URLSearchParams({ 'powgate-token': await freshToken() })
  assert.equal(await isAsked('/', `id=5&${new URLSearchParams({ data: `${packed}` })}`), false)
  const idAndToken = async () => new URLSearchParams({ id: '5', 'powgate-token': await freshToken() })
  assert.equal(await isAsked(`/?${await idAndToken()}`, ''), false)
  assert.equal(await isAsked('/?rest_route=/', 'id=5', URLENCODED, 'PUT'), true)
  assert.equal(await isAsked('/?rest_route=/', '{"id":5}', 'application/json'), true)
  const json = JSON.stringify(Object.fromEntries(await idAndToken()))
  assert.equal(await isAsked('/?rest_route=/', json, 'application/json'), false)
})

test('a rule may name a field of files, and a form that is sent again asks for them, by their names', async () => {
  configure({ fields: 'cv[]' })
  const body = new FormData()
  body.set('contact_message', 'Hello')
  body.append('cv[]', new Blob(['x']), 'ada.pdf')
  const text = await (await fetch(wordpress.url + contactPage, { method: 'POST', body })).text()
  assert.match(text, /<form method="post" enctype="multipart\/form-data">/)
  assert.match(text, /choose your files again:.*ada\.pdf <input type="file" name="cv\[0\]">/)
})

test('only pages with a form load scripts, from the service', async () => {
  const { text } = await call(`${wordpress.url}/`, { isForeign: true })
  assert.doesNotMatch(text, /widget\.js|pow-gate|powgate/)
  const form = await call(`${wordpress.url}/?p=1`, { isForeign: true })
  assert.equal(form.text.split(`${service.url}/widget.js`).length, 2)
})

test("the block gives the element, in the editor's newest form, and for a form elsewhere on the page", () => {
  const [version, html] = wordpress.php(`
    $block = WP_Block_Type_Registry::get_instance()->get_registered('powgate/check');
    return array($block->api_version, do_blocks('<!-- wp:powgate/check {"form":"elsewhere"} /-->'));`)
  assert.equal(version, 3)
  assert.match(html, /<pow-gate [^>]*form="elsewhere">/)
})

test('a refused visitor reads it in the language of the site', async () => {
  const texts = { de_DE: 'Bitte erlauben Sie', fr_FR: 'autoriser', es_ES: 'Permita', ja: 'を許可し' }
  for (const [language, text] of Object.entries(texts)) {
    wordpress.php(`update_option('test_locale', '${language}');`)
    assert.match((await spam(COMMENT)).text, new RegExp(text))
  }
  wordpress.php("delete_option('test_locale');")
})

test('people who are signed in are asked only if the owner says so, and other ways to log in never', async () => {
  const { page } = await signedIn()
  for (const more of [[], ['signed_in']]) {
    configure({ on: [...ON, ...more] })
    await page.goto(`${wordpress.url}/?p=1`)
    assert.equal(await page.locator('pow-gate').count(), more.length)
  }
  configure({ on: ['cf7', 'wpforms', 'gravityforms'] })
  const hooks = wordpress.php(`
    array_map('remove_all_filters', $hooks = array('wpcf7_spam', 'wpforms_process', 'gform_validation'));
    wp_set_current_user(1);
    powgate_add_plugin_forms();
    return array_map('has_filter', $hooks);`)
  assert.deepEqual(hooks, [false, false, false])
  configure()
  await page.goto(`${wordpress.url}/?p=1`)
  await comment(page, 'of the owner')
  await page.waitForURL(/#comment-/)
  // As XML-RPC and WP-CLI do.
  assert.equal(wordpress.php(`return wp_authenticate('admin', '${PASSWORD}')->ID;`), 1)
})

async function signedIn(): Promise<Visit> {
  configure({ on: ['comments'] }) // a log-in needs no token
  const visited = await visit('/wp-login.php')
  await visited.page.fill('#user_login', 'admin')
  await visited.page.fill('#user_pass', PASSWORD)
  await visited.page.click('#wp-submit')
  await visited.page.waitForURL(/\/wp-admin\//)
  configure()
  return visited
}

test('a wrong key and a full rate limit refuse everybody, also where outages let pass, and say so', async () => {
  const { apiKey } = await service.createSite({ limits: { redeem: 1 } })
  const unknown = `${site.apiKey.slice(0, -4)}AAAA`
  for (const [more, api_key, status, words, reason] of [
    [[], unknown, 503, SETUP, 'not checked, status 401 invalid-credentials'],
    [['lets_pass'], unknown, 503, SETUP, 'not checked, status 401 invalid-credentials'],
    [[], apiKey, 403, SETUP, 'refused: site-mismatch'],
    [['lets_pass'], apiKey, 503, AWAY, 'not checked, status 429 rate-limited'],
  ] as const) {
    configure({ on: [...ON, ...more], api_key })
    wordpress.takeLog()
    const answer = await spam(COMMENT, await freshToken())
    assert.equal(answer.status, status)
    assert.match(answer.text, new RegExp(words))
    assert.match(wordpress.takeLog(), new RegExp(`powgate: ${reason}`))
  }
})

describe('while the service is away', () => {
  before(() => service.end())
  after(() => service.boot())

  test('forms are refused with words that say when to try again, and keep what was typed', async () => {
    const { page } = await visit('/?p=1')
    await comment(page, 'written during the outage')
    await page.waitForFunction(`document.body?.innerText.includes('${MISSING}')`)
    assert.match(await page.innerText('body'), /try again in a few minutes/)
    assert.match(await page.content(), /assets\/page\.js/) // so that a form that may pass is let go
    assert.equal(await page.inputValue('textarea'), 'written during the outage')
    const { status, text } = await spam(CONTACT, 'a token of before')
    assert.equal(status, 503)
    assert.match(text, new RegExp(AWAY))
    assert.match(text, /a person<\/textarea>/)
    assert.doesNotMatch(text, /history\.back/) // which would lose it
    assert.match((await spam(LOGIN, 'a token of before')).text, new RegExp(AWAY))
    assert.match(wordpress.takeLog(), /powgate: not checked, no answer: /)
  })

  test('they pass where the owner says so, and the log tells', async () => {
    configure({ on: [...ON, 'lets_pass'] })
    const { page } = await visit('/?p=1')
    await comment(page, 'let pass during the outage')
    await page.waitForURL(/#comment-/)
    assert.match(wordpress.takeLog(), /powgate: let pass unchecked, no answer: /)
    // No token is longer than 1024 characters, so the plugin refuses it without a call (verify.php), also in an outage.
    assert.equal((await spam(CONTACT, 'x'.repeat(1025))).status, 403)
  })
})

describe('the settings page', () => {
  let page: Page
  before(async () => {
    page = (await signedIn()).page
  })
  const open = () => page.goto(`${wordpress.url}/wp-admin/options-general.php?page=powgate`)
  const tested = async (button = 'powgate_test') => {
    await page.click(`[name="${button}"]`)
    return page.innerText('.notice[role="status"]')
  }

  test('saves what is entered, the API key without autoload, and never shows it again', async () => {
    wordpress.php("delete_option('powgate'); delete_option('powgate_api_key');")
    await open()
    await page.fill('#powgate-url', `${service.url}/`)
    await page.fill('#powgate-site_key', site.siteKey)
    await page.fill('#powgate-api_key', site.apiKey)
    await page.fill('#powgate-header', 'HTTP_X_FORWARDED_FOR') // as PHP calls it
    assert.match(await tested(), /brought no token/) // since no element was there yet
    assert.ok(!(await page.content()).includes(site.apiKey))
    const stored = wordpress.php(`
      global $wpdb;
      $key = $wpdb->get_row("select option_value, autoload from $wpdb->options where option_name = 'powgate_api_key'");
      return array(get_option('powgate')['url'], $key->option_value, $key->autoload);`)
    assert.deepEqual(stored.slice(0, 2), [service.url, site.apiKey])
    assert.match(stored[2], /^(no|off)$/)
    await verified(page)
    assert.match(await tested(), /^All is well\. Your browser was verified at 127\.0\.0\.1 with score 1/)
  })

  test('names what is wrong, and what to do', async () => {
    const nobody = `http://127.0.0.1:${await freePort()}`
    const closed = await service.createSite({ origins: ['https://other.example'] })
    const wrong: readonly [RegExp, Readonly<Record<string, unknown>>, true?][] = [
      [/keys are swapped/, { site_key: site.apiKey, api_key: site.siteKey }],
      [/Something is missing/, { url: '' }],
      [/powgate site update site_\w+ --origin http:\/\/127\.0\.0\.1:\d+/, { site_key: closed.siteKey }],
      [/does not know the site key/, { site_key: `site_${'0'.repeat(22)}` }],
      [/does not know the API key/, { api_key: `${site.apiKey.slice(0, -4)}AAAA` }],
      [/cannot reach powgate: .*another address than browsers/, { server_url: nobody }],
      [/GET \/challenge was answered with 404 not-found/, { server_url: `${service.url}/nothing` }],
      [/saw your browser at 127\.0\.0\.1, WordPress at “127\.0\.0\.2”/, { header: '' }, true],
      [/belongs to another site/, { api_key: closed.apiKey }, true],
      [/brought no token/, { url: nobody, server_url: service.url }],
    ]
    for (const [words, settings, needsToken] of wrong) {
      configure(settings)
      await open()
      if (needsToken) await verified(page)
      assert.match(await tested(), words)
    }
  })

  test('takes an address without https://, and stores no swapped keys', async () => {
    await open()
    await page.fill('#powgate-server_url', 'captcha.example.com:8443')
    assert.equal(await tested('powgate_save'), 'Saved. Now test the connection.')
    assert.equal(await page.inputValue('#powgate-server_url'), 'https://captcha.example.com:8443')
    await page.fill('#powgate-site_key', site.apiKey)
    assert.match(await tested('powgate_save'), /keys are swapped/)
    assert.ok(!(await page.content()).includes(site.apiKey))
    assert.equal(wordpress.php("return get_option('powgate')['site_key'];"), site.siteKey)
  })
})

test('uninstalling removes all that the plugin has stored', () => {
  const left = wordpress.php(`
    require ABSPATH . 'wp-admin/includes/plugin.php';
    deactivate_plugins('powgate/powgate.php');
    uninstall_plugin('powgate/powgate.php');
    global $wpdb;
    return $wpdb->get_col("select option_name from $wpdb->options where option_name like '%powgate%'");`)
  assert.deepEqual(left, [])
})
