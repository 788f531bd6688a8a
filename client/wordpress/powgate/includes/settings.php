<?php
/**
 * What the owner has chosen: the option `powgate`, the option `powgate_api_key`, which only a redemption loads, and
 * constants in wp-config.php, which win.
 *
 * @package powgate
 */

defined( 'ABSPATH' ) || exit;

const POWGATE_DEFAULTS = array(
	'url'        => '',
	'server_url' => '',
	'site_key'   => '',
	'has_key'    => false,
	'on'         => array( 'comments', 'register', 'lostpassword' ),
	'fields'     => '',
	'header'     => '',
);

/**
 * The constant of a setting, if wp-config.php has it: POWGATE_URL, POWGATE_SERVER_URL, POWGATE_SITE_KEY, POWGATE_API_KEY.
 *
 * @param string $name The setting.
 */
function powgate_constant( string $name ): ?string {
	$constant = 'POWGATE_' . strtoupper( $name );
	return defined( $constant ) ? untrailingslashit( constant( $constant ) ) : null;
}

/**
 * A setting's value.
 *
 * @param string $name A key of POWGATE_DEFAULTS, or `api_key`.
 * @return mixed
 */
function powgate_setting( string $name ) {
	$value = powgate_constant( $name );
	if ( null === $value && 'api_key' === $name ) {
		return (string) get_option( 'powgate_api_key', '' );
	}
	return $value ?? ( (array) get_option( 'powgate', array() ) + POWGATE_DEFAULTS )[ $name ];
}

/**
 * Whether forms need a token: not before address and keys are known, nor while the constant POWGATE_OFF is true.
 */
function powgate_is_ready(): bool {
	if ( defined( 'POWGATE_OFF' ) && constant( 'POWGATE_OFF' ) ) {
		return false;
	}
	// Reading the key itself would be a query on every page.
	$has_key = null !== powgate_constant( 'api_key' ) || powgate_setting( 'has_key' );
	return $has_key && '' !== powgate_setting( 'url' ) && '' !== powgate_setting( 'site_key' );
}

/**
 * Whether the owner has ticked a box.
 *
 * @param string $box As in powgate_rows().
 */
function powgate_is_on( string $box ): bool {
	return in_array( $box, powgate_setting( 'on' ), true );
}

/**
 * Whether this visitor needs no token because of being signed in.
 */
function powgate_spares_user(): bool {
	return is_user_logged_in() && ! powgate_is_on( 'signed_in' );
}
