<?php
/**
 * "Test the connection": a whole visit. The owner's browser is the visitor, so its token tells whether pages may use the
 * site key, and whether powgate and WordPress see the same address. This server's own calls tell why there is no token.
 *
 * @package powgate
 */

defined( 'ABSPATH' ) || exit;

/**
 * Tests the settings.
 *
 * @param string $token From the element on the settings page; empty if it got none.
 * @return array Whether all is well, and a sentence: what is wrong, and what to do.
 */
function powgate_test( string $token ): array {
	foreach ( powgate_problems( $token ) as $problem ) {
		if ( '' !== $problem ) {
			return array( false, $problem );
		}
	}
	return powgate_test_token( $token );
}

/**
 * What is wrong, step by step: each is asked only if those before it are well.
 *
 * @param string $token As of powgate_test().
 */
function powgate_problems( string $token ): Generator {
	yield powgate_keys_problem( powgate_setting( 'site_key' ), powgate_setting( 'api_key' ) );
	yield powgate_is_ready() ? '' : __( 'Something is missing: enter the address and both keys, and save. If wp-config.php defines POWGATE_OFF, remove it.', 'powgate' );
	yield powgate_site_problem();
	yield powgate_key_problem();
	yield '' !== $token ? '' : __( 'This server reaches powgate, and both keys are right, but your browser brought no token. Wait until the element below says that you are verified, and test again. If it does not, its words and your browser’s console say why.', 'powgate' );
}

/**
 * What is wrong with the keys, by how they begin.
 *
 * @param string $site_key Public.
 * @param string $api_key  Secret.
 */
function powgate_keys_problem( string $site_key, string $api_key ): string {
	$are_swapped = 0 === strpos( $site_key, 'sk_' ) || 0 === strpos( $api_key, 'site_' );
	return $are_swapped ? __( 'The keys are swapped: the site key begins with site_, the secret API key with sk_. Enter them again.', 'powgate' ) : '';
}

/**
 * Asks for a challenge as a page of this WordPress does.
 */
function powgate_site_problem(): string {
	$key    = powgate_setting( 'site_key' );
	$origin = powgate_origin( home_url() );
	$args   = array(
		'headers' => array(
			'X-Site-Key' => $key,
			'Origin'     => $origin,
		),
	);
	$answer = powgate_answer( wp_remote_get( powgate_server_url() . '/challenge', $args ) );
	switch ( $answer['code'] ) {
		case 'origin-not-allowed':
			/* translators: 1: origin of the pages, 2: command. */
			return sprintf( __( 'powgate does not let pages of %1$s use this site key. On powgate’s host, run: %2$s (it replaces the list, so name every origin of your pages).', 'powgate' ), $origin, "powgate site update $key --origin $origin" );
		case 'site-unknown':
		case 'site-key-malformed':
			/* translators: %s: site key. */
			return sprintf( __( 'powgate does not know the site key %s. Compare it with the output of: powgate site list.', 'powgate' ), $key );
	}
	return 200 === $answer['status'] && isset( $answer['nonce'] ) ? '' : powgate_answer_problem( 'GET /challenge', $answer );
}

/**
 * Tests the API key by redeeming `-`: the service answers that this is no token only if the key is right.
 */
function powgate_key_problem(): string {
	$answer = powgate_redeem( '-', null );
	if ( 401 === $answer['status'] ) {
		/* translators: %s: command. */
		return sprintf( __( 'powgate does not know the API key. For a new one, run on powgate’s host: %s', 'powgate' ), 'powgate key create ' . powgate_setting( 'site_key' ) );
	}
	return 'invalid-token' === $answer['code'] ? '' : powgate_answer_problem( 'POST /verify-token', $answer );
}

/**
 * What is wrong with an answer that is none of powgate's verdicts.
 *
 * @param string $call   For example `GET /challenge`.
 * @param array  $answer Of powgate_answer().
 */
function powgate_answer_problem( string $call, array $answer ): string {
	if ( 0 === $answer['status'] ) {
		/* translators: %s: error message of the connection. */
		return sprintf( __( 'This server cannot reach powgate: %s. Does it run, and is the address right? If this server reaches it under another address than browsers do, enter that one too.', 'powgate' ), rtrim( $answer['error'], '.' ) );
	}
	/* translators: 1: call, for example GET /challenge, 2: HTTP status and code. */
	return sprintf( __( '%1$s was answered with %2$s. Is the address powgate’s? If there is no code, a proxy before powgate may have answered: let this server through there, or enter the address under which this server reaches powgate directly.', 'powgate' ), $call, trim( "{$answer['status']} {$answer['code']}" ) );
}

/**
 * Redeems the token of the owner's browser, as of any visitor.
 *
 * @param string $token From the element.
 * @return array As of powgate_test().
 */
function powgate_test_token( string $token ): array {
	$own    = powgate_address();
	$answer = powgate_redeem( $token, $own );
	if ( 'ip-mismatch' === $answer['code'] || 'invalid-body' === $answer['code'] ) {
		$seen = powgate_redeem( $token, null ); // The token was not spent.
		/* translators: 1: address, 2: address. */
		return array( false, sprintf( __( 'powgate saw your browser at %1$s, WordPress at “%2$s”, so every visitor would be refused. Is one of the two behind a proxy? If WordPress is, enter the proxy’s header below (no address means that this header did not come); if powgate is, name the proxy in POWGATE_TRUSTED_PROXIES. If one of the two is an IPv6 address, let browsers reach both by IPv6, or neither.', 'powgate' ), $seen['ip'] ?? '?', $own ) );
	}
	if ( 'site-mismatch' === $answer['code'] ) {
		return array( false, __( 'The API key belongs to another site than the site key. Enter two keys of one site.', 'powgate' ) );
	}
	if ( true !== $answer['success'] ) {
		/* translators: %s: code of powgate. */
		return array( false, sprintf( __( 'powgate refused your browser’s token: %s. Wait until you are verified again, and test again.', 'powgate' ), trim( "{$answer['status']} {$answer['code']}" ) ) );
	}
	/* translators: 1: address, 2: number from 0 to 1. */
	return array( true, sprintf( __( 'All is well. Your browser was verified at %1$s with score %2$s, and its token was redeemed.', 'powgate' ), $answer['ip'], $answer['score'] ) );
}
