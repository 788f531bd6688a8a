<?php
/**
 * The settings page.
 *
 * @package powgate
 */

defined( 'ABSPATH' ) || exit;

/**
 * Adds the page to the menu.
 */
function powgate_add_page() {
	add_options_page( 'powgate', 'powgate', 'manage_options', 'powgate', 'powgate_page' );
}

/**
 * Adds a link to the list of plugins.
 *
 * @param array $links Of this plugin.
 */
function powgate_add_link( array $links ): array {
	$link = sprintf( '<a href="%s">%s</a>', esc_url( admin_url( 'options-general.php?page=powgate' ) ), esc_html__( 'Settings', 'powgate' ) );
	return array( $link ) + $links;
}

/**
 * Shows the page, after it has done what its buttons ask for.
 */
function powgate_page() {
	echo '<div class="wrap"><h1>powgate</h1>';
	if ( isset( $_POST['powgate_save'] ) || isset( $_POST['powgate_test'] ) ) {
		check_admin_referer( 'powgate' );
		list( $is_well, $text ) = powgate_save( wp_unslash( $_POST ) );
		printf( '<div class="notice notice-%s" role="status"><p>%s</p></div>', $is_well ? 'success' : 'error', esc_html( $text ) );
	}
	echo '<form method="post"><table class="form-table" role="presentation">';
	wp_nonce_field( 'powgate' );
	powgate_rows();
	echo '</table>';
	$unchecked = array( 'formnovalidate' => true ); // Otherwise nothing could be saved while powgate is away.
	submit_button( __( 'Save', 'powgate' ), 'primary', 'powgate_save', true, $unchecked );
	echo powgate_field( array( 'auto' => 'load' ) ); // phpcs:ignore WordPress.Security.EscapeOutput.OutputNotEscaped -- escaped where it is made.
	submit_button( __( 'Test the connection', 'powgate' ), 'secondary', 'powgate_test', true, $unchecked );
	echo '</form>';
	powgate_notes();
	echo '</div>';
}

/**
 * Stores what was entered, and then tests it if the owner pressed that button. So the test is of what the page shows.
 *
 * @param array $post As sent.
 * @return array As of powgate_test().
 */
function powgate_save( array $post ): array {
	$text = static function ( string $name ) use ( $post ): string {
		return sanitize_text_field( $post[ $name ] ?? '' );
	};
	$url  = static function ( string $typed ): string {
		$typed = '' === $typed || false !== strpos( $typed, '://' ) ? $typed : "https://$typed";
		return untrailingslashit( esc_url_raw( $typed, array( 'http', 'https' ) ) );
	};

	$problem = powgate_keys_problem( $text( 'site_key' ), $text( 'api_key' ) );
	if ( '' !== $problem ) {
		return array( false, $problem );
	}
	$before = powgate_keys();
	if ( '' !== $text( 'api_key' ) ) {
		update_option( 'powgate_api_key', $text( 'api_key' ), false ); // Not loaded with every page.
	}
	$chosen = array(
		'url'        => $url( $text( 'url' ) ),
		'server_url' => $url( $text( 'server_url' ) ),
		'site_key'   => $text( 'site_key' ),
		'has_key'    => '' !== powgate_setting( 'api_key' ),
		'on'         => array_map( 'sanitize_key', (array) ( $post['on'] ?? array() ) ),
		'fields'     => sanitize_textarea_field( $post['fields'] ?? '' ),
		// PHP's name for it, HTTP_X_FORWARDED_FOR, means the same.
		'header'     => trim( preg_replace( array( '/^HTTP_/', '/[^A-Za-z0-9]+/' ), array( '', '-' ), $text( 'header' ) ), '-' ),
	);
	update_option( 'powgate', $chosen );
	if ( ! isset( $post['powgate_test'] ) ) {
		return array( true, __( 'Saved. Now test the connection.', 'powgate' ) );
	}
	// A token is good for the settings that its element had: those until now.
	return powgate_test( powgate_keys() === $before ? $text( 'powgate-token' ) : '' );
}

/**
 * The rows of the table.
 */
function powgate_rows() {
	powgate_text_row( 'url', __( 'Address of powgate', 'powgate' ), __( 'As browsers reach it, for example https://captcha.example.com', 'powgate' ) );
	powgate_text_row( 'server_url', __( 'Address for this server', 'powgate' ), __( 'Only if this server reaches powgate under another address, for example http://10.0.0.5:8080', 'powgate' ) );
	powgate_text_row( 'site_key', __( 'Site key', 'powgate' ), __( 'Begins with site_', 'powgate' ) );
	$has_key = '' !== powgate_setting( 'api_key' );
	powgate_text_row( 'api_key', __( 'API key', 'powgate' ), $has_key ? __( 'One is stored, and is not shown again. Leave this empty to keep it.', 'powgate' ) : __( 'Begins with sk_, and is secret', 'powgate' ), 'password' );

	$boxes = array(
		'comments'     => __( 'Comments', 'powgate' ),
		'login'        => __( 'Log-in. Tick this after a test: with a wrong key nobody could log in', 'powgate' ),
		'register'     => __( 'Registration', 'powgate' ),
		'lostpassword' => __( 'Lost password', 'powgate' ),
		'cf7'          => 'Contact Form 7',
		'woocommerce'  => __( 'WooCommerce: checkout (not the checkout block) and account. Try Apple Pay and Google Pay then: some of their buttons are refused', 'powgate' ),
		'wpforms'      => 'WPForms',
		'gravityforms' => 'Gravity Forms',
		'signed_in'    => __( 'Ask people who are signed in, too', 'powgate' ),
	);
	powgate_row( __( 'Forms', 'powgate' ), powgate_boxes( $boxes ) );

	$fields = sprintf( '<textarea name="fields" id="powgate-fields" rows="3" class="regular-text code">%s</textarea>', esc_textarea( powgate_setting( 'fields' ) ) );
	powgate_row( __( 'Other forms', 'powgate' ), $fields, __( 'Put [powgate] or the block into the form. Then write here, one a line, the name of a field that only this form has, or name=value: every request with that field needs a token. Ninja Forms sends no token, so this cannot guard it.', 'powgate' ), 'fields' );

	$box = array( 'lets_pass' => __( 'Let forms pass unchecked, and say so in PHP’s log. Whoever keeps powgate busy then gets in. Otherwise they are refused, and what was typed is kept', 'powgate' ) );
	powgate_row( __( 'While powgate is away', 'powgate' ), powgate_boxes( $box ) );
	powgate_text_row( 'header', __( 'Header of your proxy', 'powgate' ), __( 'For example X-Forwarded-For, whose last address counts. Leave this empty unless every request comes through your proxy: otherwise anybody can write any address into it.', 'powgate' ) );
}

/**
 * Check boxes.
 *
 * @param array $boxes Labels by name, escaped here.
 */
function powgate_boxes( array $boxes ): string {
	$html = '';
	foreach ( $boxes as $name => $label ) {
		$html .= sprintf( '<label><input type="checkbox" name="on[]" value="%s"%s> %s</label><br>', $name, checked( powgate_is_on( $name ), true, false ), esc_html( $label ) );
	}
	return "<fieldset>$html</fieldset>";
}

/**
 * A row with a text field, which a constant locks.
 *
 * @param string $name  The setting.
 * @param string $label Escaped here.
 * @param string $help  Escaped here.
 * @param string $type  Of the field; a password's value is never printed.
 */
function powgate_text_row( string $name, string $label, string $help, string $type = 'text' ) {
	$is_locked = null !== powgate_constant( $name );
	$value     = 'password' === $type ? '' : powgate_setting( $name );
	$field     = sprintf( '<input type="%1$s" name="%2$s" id="powgate-%2$s" class="regular-text code" autocomplete="new-password" value="%3$s"%4$s>', $type, $name, esc_attr( $value ), disabled( $is_locked, true, false ) );
	/* translators: %s: name of a constant. */
	powgate_row( $label, $field, $is_locked ? sprintf( __( 'Set in wp-config.php, as %s', 'powgate' ), 'POWGATE_' . strtoupper( $name ) ) : $help, $name );
}

/**
 * A row.
 *
 * @param string $label Escaped here.
 * @param string $field HTML.
 * @param string $help  Escaped here.
 * @param string $name  Of the field.
 */
function powgate_row( string $label, string $field, string $help = '', string $name = '' ) {
	$label = '' === $name ? esc_html( $label ) : sprintf( '<label for="powgate-%s">%s</label>', $name, esc_html( $label ) );
	$help  = '' === $help ? '' : sprintf( '<p class="description">%s</p>', esc_html( $help ) );
	echo "<tr><th scope=\"row\">$label</th><td>$field$help</td></tr>"; // phpcs:ignore WordPress.Security.EscapeOutput.OutputNotEscaped -- escaped above.
}

/**
 * What the owner may need: a strict policy's lines, and the way back in.
 */
function powgate_notes() {
	$url = powgate_setting( 'url' );
	printf(
		'<h2>%s</h2><p>%s</p><pre>script-src %3$s; connect-src %3$s; frame-src %3$s</pre><p>%4$s</p><pre>define( \'POWGATE_OFF\', true );</pre>',
		esc_html__( 'Good to know', 'powgate' ),
		esc_html__( 'If your pages have a Content-Security-Policy, add:', 'powgate' ),
		esc_html( powgate_origin( '' !== $url ? $url : 'https://captcha.example.com' ) ),
		esc_html__( 'If powgate is away and you cannot log in, switch the plugin off with this line in wp-config.php:', 'powgate' )
	);
}

/**
 * The origin of an address.
 *
 * @param string $url The address.
 */
function powgate_origin( string $url ): string {
	return preg_replace( '#^(\w+://[^/]+).*#', '$1', $url );
}
