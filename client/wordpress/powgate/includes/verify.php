<?php
/**
 * Redeems the token of a form: once a request, within 3 s, bound to the visitor's address.
 *
 * @package powgate
 */

// phpcs:disable WordPress.Security.NonceVerification -- The token takes a nonce's place, and works on cached pages too.

defined( 'ABSPATH' ) || exit;

/** A payer may take so long from the first call to the send that counts. */
const POWGATE_NOTED_SECONDS = 900;

/** Ends of names of notes beside the first: each lets one more early call pass. Of a count, calls at once would all read the same. */
const POWGATE_SPARES = array( '_1', '_2', '_3' );

/**
 * Whether this request comes with a good token. For your own form, put the shortcode [powgate] into it and ask this
 * where you handle it; asking again in one request gives the same answer.
 *
 * @return true|WP_Error With words for the visitor, and a status for your answer in its data.
 */
function powgate_verify() {
	static $code = null;
	$code        = $code ?? powgate_judge();
	if ( '' === $code ) {
		return true;
	}
	$status = in_array( $code, array( 'unavailable', 'setup' ), true ) ? 503 : 403;
	return new WP_Error( 'powgate', powgate_words( $code ), array( 'status' => $status ) );
}

/**
 * The same for a call that only validates a form before the send that counts. It notes the token for that send, and passes three
 * times more, because a buyer may close the window of the payment and press its button again.
 *
 * @param string $form A name of the form.
 * @return true|WP_Error As of powgate_verify().
 */
function powgate_verify_early( string $form ) {
	$note = powgate_note( $form );
	foreach ( get_transient( $note ) ? POWGATE_SPARES : array() as $spare ) {
		if ( powgate_take( $note . $spare ) ) {
			return true;
		}
	}
	$verdict = powgate_verify();
	foreach ( true === $verdict ? array_merge( POWGATE_SPARES, array( '' ) ) : array() as $end ) {
		set_transient( $note . $end, 1, POWGATE_NOTED_SECONDS );
	}
	return $verdict;
}

/**
 * The same for the send that counts: a noted token passes, once, from the same address.
 *
 * @param string $form A name of the form.
 * @return true|WP_Error As of powgate_verify().
 */
function powgate_verify_noted( string $form ) {
	$note = powgate_note( $form );
	if ( powgate_take( $note ) ) {
		foreach ( POWGATE_SPARES as $spare ) {
			delete_transient( $note . $spare );
		}
		return true;
	}
	return powgate_verify();
}

/**
 * Uses a note up: of requests at once, one deletes it.
 *
 * @param string $name Of the note.
 */
function powgate_take( string $name ): bool {
	return get_transient( $name ) && delete_transient( $name );
}

/**
 * The name of a note that this visitor's token was redeemed for a form.
 *
 * @param string $form A name of the form.
 */
function powgate_note( string $form ): string {
	return 'powgate_' . wp_hash( $form . ' ' . powgate_address() . ' ' . powgate_token() );
}

/**
 * The token of this request's form; '' if it has none.
 */
function powgate_token(): string {
	$post = wp_unslash( $_POST ) + powgate_body();
	$sent = $post + powgate_packed( $post ) + wp_unslash( $_GET );
	return sanitize_text_field( $sent['powgate-token'] ?? '' );
}

/**
 * The verdict on this request's token: '' for a pass, else a code of the service, `token-missing`, `setup` (what the owner
 * must mend) or `unavailable` (no verdict).
 */
function powgate_judge(): string {
	$token     = powgate_token();
	$lets_pass = powgate_is_on( 'lets_pass' );
	if ( '' === $token && ! $lets_pass ) {
		return 'token-missing';
	}
	// The service takes no longer token, and cuts the connection of one that is far too long, which would look like an outage.
	if ( strlen( $token ) > 1024 ) {
		return powgate_log( 'invalid-token', 'refused: invalid-token' );
	}
	// While the service is away nobody gets a token. If an outage lets forms pass, `-`, which is no token, shows whether there is one.
	$answer = powgate_redeem( '' === $token ? '-' : $token, powgate_address() );
	$status = $answer['status'];
	if ( true === $answer['success'] ) {
		return '';
	}
	if ( 400 === $status && '' !== $answer['code'] ) {
		return '' === $token ? 'token-missing' : powgate_log( $answer['code'], "refused: {$answer['code']}" );
	}
	$reason = 0 === $status ? "no answer: {$answer['error']}" : trim( "status $status {$answer['code']}" );
	// Only an outage lets pass: too many redemptions (429), or a wrong key, does not.
	if ( $lets_pass && powgate_is_away( $answer ) ) {
		return powgate_log( '', "let pass unchecked, $reason" );
	}
	return powgate_log( in_array( $status, array( 401, 403, 404 ), true ) ? 'setup' : 'unavailable', "not checked, $reason" );
}

/**
 * Writes a line to PHP's log, without the visitor's address.
 *
 * @param string $code Returned.
 * @param string $line What happened.
 */
function powgate_log( string $code, string $line ): string {
	error_log( "powgate: $line" ); // phpcs:ignore WordPress.PHP.DevelopmentFunctions.error_log_error_log -- the owner's way to see why.
	return $code;
}

/**
 * Whether there was no answer, or only that of a proxy which reaches no service.
 *
 * @param array $answer Of powgate_answer().
 */
function powgate_is_away( array $answer ): bool {
	return in_array( $answer['status'], array( 0, 502, 503, 504 ), true );
}

/**
 * Redeems a token. A second try has the same idempotencyKey, so a lost answer costs no visitor.
 *
 * @param string  $token   From the form.
 * @param ?string $address The visitor's; null leaves it unchecked.
 */
function powgate_redeem( string $token, ?string $address ): array {
	$request = array(
		'token'          => $token,
		'idempotencyKey' => wp_generate_uuid4(),
	);
	if ( null !== $address ) {
		$request['expectedIp'] = $address;
	}
	$args   = array(
		'headers'     => array(
			'Authorization' => 'Bearer ' . powgate_setting( 'api_key' ),
			'Content-Type'  => 'application/json',
		),
		'body'        => wp_json_encode( $request ),
		'timeout'     => 1.45, // Two tries and the pause between them: 3 s.
		'redirection' => 0, // The API key goes to no other address.
	);
	$url    = powgate_server_url() . '/verify-token';
	$answer = powgate_answer( wp_remote_post( $url, $args ) );
	if ( powgate_is_away( $answer ) ) {
		usleep( 100000 );
		$answer = powgate_answer( wp_remote_post( $url, $args ) );
	}
	return $answer;
}

add_action( 'requests-requests.before_request', 'powgate_limit_connecting', 10, 5 );

/**
 * Without PHP's extension curl, WordPress waits 10 s for a connection, whatever the time-out says.
 *
 * @param string $url     Called.
 * @param array  $headers Of the request.
 * @param mixed  $data    Of the request.
 * @param string $type    Of the request.
 * @param array  $options Of the request.
 */
function powgate_limit_connecting( $url, $headers, $data, $type, &$options ) {
	if ( 0 === strpos( $url, powgate_server_url() . '/' ) ) {
		$options['connect_timeout'] = 1;
	}
}

/**
 * The address of the service as this server reaches it.
 */
function powgate_server_url(): string {
	return powgate_setting( 'server_url' ) ? powgate_setting( 'server_url' ) : powgate_setting( 'url' );
}

/**
 * What the service has answered, always with status (0: nothing came), success, code and error.
 *
 * @param array|WP_Error $response Of wp_remote_get() or wp_remote_post().
 */
function powgate_answer( $response ): array {
	$body = json_decode( wp_remote_retrieve_body( $response ), true );
	return array( 'status' => (int) wp_remote_retrieve_response_code( $response ) ) + ( is_array( $body ) ? $body : array() ) + array(
		'success' => false,
		'code'    => '',
		'error'   => is_wp_error( $response ) ? $response->get_error_message() : '',
	);
}

/**
 * The visitor's address. A proxy appends the one that it sees to its header, so the last is the only one that it vouches
 * for; Azure's append the port, too. Without the header the address is empty, which the service refuses.
 */
function powgate_address(): string {
	$header = powgate_setting( 'header' );
	$name   = '' === $header ? 'REMOTE_ADDR' : 'HTTP_' . strtoupper( str_replace( '-', '_', $header ) );
	$list   = isset( $_SERVER[ $name ] ) ? explode( ',', sanitize_text_field( wp_unslash( $_SERVER[ $name ] ) ) ) : array( '' );
	return preg_replace( '/^(?:([\d.]+)|\[(.*)\]):\d+$/', '$1$2', trim( end( $list ) ) );
}

/**
 * Words for the visitor: what to do next.
 *
 * @param string $code Of powgate_judge().
 */
function powgate_words( string $code ): string {
	switch ( $code ) {
		case 'setup':
		case 'site-mismatch':
			return __( 'This form is not set up correctly. Please tell the site’s owner.', 'powgate' );
		case 'unavailable':
			return __( 'We cannot check at the moment that you are a person. Please send the form again in a few minutes.', 'powgate' );
		case 'token-missing':
			return __( 'We could not check that you are a person. Please allow JavaScript, and send the form again. If you allow it already, please copy your text and reload the page, or try again in a few minutes.', 'powgate' );
		case 'score-too-low':
			return __( 'Your browser looks like a program. If you are a person, please use another browser, or tell the site’s owner.', 'powgate' );
		default:
			return __( 'The check that you are a person is no longer valid. Please send the form once more.', 'powgate' );
	}
}
