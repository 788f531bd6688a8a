<?php
/**
 * The element, WordPress' own forms, the shortcode, the block, and forms that are known by a field.
 *
 * XML-RPC, REST, cron and WP-CLI need no token but where a rule finds its field, because the hooks below are those of the pages' forms.
 *
 * @package powgate
 */

// phpcs:disable WordPress.Security.NonceVerification -- The token takes a nonce's place, and works on cached pages too.

defined( 'ABSPATH' ) || exit;

/**
 * The element, the same for every visitor, so that page caches may keep it. It takes its language from the page's `lang`.
 *
 * @param array $attributes Of the element, besides its keys.
 */
function powgate_field( array $attributes = array() ): string {
	if ( ! powgate_is_ready() ) {
		return '';
	}
	// WordPress 6.1 and 6.2 know no strategy, and take the list for "in the footer".
	$strategy = array(
		'in_footer' => true,
		'strategy'  => 'async',
	);
	wp_enqueue_script( 'powgate', powgate_setting( 'url' ) . '/widget.js', array(), null, $strategy ); // phpcs:ignore WordPress.WP.EnqueuedResourceParameters.MissingVersion -- the service revalidates it by ETag.
	wp_enqueue_script( 'powgate-page', plugins_url( 'assets/page.js', __DIR__ ), array(), POWGATE_VERSION, $strategy );
	if ( powgate_is_on( 'lets_pass' ) ) {
		$attributes['data-away'] = 'pass'; // Makes assets/page.js let go of the form during an outage.
	}
	$html = '';
	foreach ( powgate_keys() + array_filter( $attributes ) as $name => $value ) {
		$html .= sprintf( ' %s="%s"', $name, esc_attr( $value ) );
	}
	$noscript = esc_html__( 'This form needs JavaScript, which proves to us that you are no bot.', 'powgate' );
	return "<div style=\"margin-block:1em;min-block-size:66px\"><pow-gate$html></pow-gate><noscript>$noscript</noscript></div>";
}

/**
 * The attributes that name the site and the service. Without `endpoint`, the element would ask where an optimiser serves the script.
 */
function powgate_keys(): array {
	return array(
		'site-key' => powgate_setting( 'site_key' ),
		'endpoint' => powgate_setting( 'url' ),
	);
}

/**
 * Prints the element: for hooks, which bring arguments of their own.
 */
function powgate_print_field() {
	echo powgate_field(); // phpcs:ignore WordPress.Security.EscapeOutput.OutputNotEscaped -- escaped where it is made.
}

/**
 * The shortcode [powgate], and [powgate form="id-of-a-form"] outside of it; the block does the same.
 */
function powgate_add_blocks() {
	$render = static function ( $attributes ) {
		return powgate_field( shortcode_atts( array( 'form' => '' ), $attributes ) );
	};
	add_shortcode( 'powgate', $render );
	$settings = array(
		'description'     => __( 'Id of the form, if the block stands outside of it', 'powgate' ),
		'render_callback' => $render,
	);
	register_block_type( dirname( __DIR__ ) . '/block', $settings );
}

/**
 * Comments, log-in, registration and lost password.
 */
function powgate_add_core_forms() {
	if ( powgate_is_on( 'comments' ) && ! powgate_spares_user() ) {
		add_filter( 'comment_form_submit_field', 'powgate_before_button' );
		add_action( 'pre_comment_on_post', 'powgate_require' );
	}
	if ( powgate_is_on( 'login' ) ) {
		add_action( 'login_form', 'powgate_print_field' );
		add_filter( 'login_form_middle', 'powgate_before_button' );
		add_filter( 'authenticate', 'powgate_authenticate', 1, 3 );
	}
	if ( powgate_is_on( 'register' ) ) {
		add_action( 'register_form', 'powgate_print_field' );
		add_filter( 'registration_errors', 'powgate_add_error' );
		// A network of sites has two forms on wp-signup.php, and each is checked.
		add_action( 'signup_extra_fields', 'powgate_print_field' );
		add_action( 'signup_blogform', 'powgate_print_field' );
		add_filter( 'wpmu_validate_user_signup', 'powgate_validate_signup' );
	}
	if ( powgate_is_on( 'lostpassword' ) ) {
		add_action( 'lostpassword_form', 'powgate_print_field' );
		add_action( 'lostpassword_post', 'powgate_add_error' );
	}
}

/**
 * Puts the element before the button.
 *
 * @param string $html The button.
 */
function powgate_before_button( $html ): string {
	return powgate_field() . $html;
}

/**
 * Refuses a log-in on wp-login.php before the password is looked at, so that guessing costs this server nothing.
 *
 * @param mixed  $user     Null, or what an earlier filter says.
 * @param string $username As typed.
 * @param string $password As typed.
 * @return mixed
 */
function powgate_authenticate( $user, $username, $password ) {
	if ( ! did_action( 'login_init' ) || '' === $username || '' === $password ) {
		return $user;
	}
	$verdict = powgate_verify();
	if ( true === $verdict ) {
		return $user;
	}
	remove_all_filters( 'authenticate' ); // Otherwise a right password would replace the error.
	// With this code the form keeps the name, and plugins that count failed log-ins count none.
	return new WP_Error( 'empty_password', $verdict->get_error_message() );
}

/**
 * Adds the refusal to the errors of a form on wp-login.php; other plugins call the same hooks.
 *
 * @param WP_Error $errors So far.
 */
function powgate_add_error( $errors ) {
	return did_action( 'login_init' ) ? powgate_refuse( $errors ) : $errors;
}

/**
 * Puts the refusal in the errors' place: without a token nobody learns which names and addresses are registered.
 *
 * @param WP_Error $errors So far.
 * @param string   $code   Under which the form shows it.
 */
function powgate_refuse( $errors, string $code = 'powgate' ) {
	$verdict = powgate_verify();
	if ( true !== $verdict ) {
		array_map( array( $errors, 'remove' ), $errors->get_error_codes() );
		$errors->add( $code, $verdict->get_error_message() );
	}
	return $errors;
}

/**
 * The same for wp-signup.php.
 *
 * @param array $result With `errors`.
 */
function powgate_validate_signup( $result ) {
	if ( did_action( 'before_signup_header' ) ) {
		powgate_refuse( $result['errors'], 'generic' );
	}
	return $result;
}

/**
 * Guards any other form. Each line of the setting is the name of a field, or `name=value`, by which the form's handler knows its
 * form. The address of the request does not matter, because most handlers look for their field at every address.
 */
function powgate_guard_fields() {
	$rules = preg_split( '/\s*[\r\n]+\s*/', trim( powgate_setting( 'fields' ) ), -1, PREG_SPLIT_NO_EMPTY );
	if ( empty( $rules ) || powgate_spares_user() ) {
		return;
	}
	$get    = wp_unslash( $_GET );
	$post   = wp_unslash( $_POST ) + powgate_body();
	$places = array( $get, $post, wp_list_pluck( $_FILES, 'name' ), powgate_packed( $get ), powgate_packed( $post ) ); // A handler may read any.
	foreach ( $rules as $rule ) {
		list( $name, $value ) = array_map( 'trim', explode( '=', $rule, 2 ) ) + array( '', null );
		foreach ( $places as $fields ) {
			$sent = powgate_sent( $fields, $name );
			if ( null !== $sent && ( null === $value || powgate_is_like( $sent, $value ) ) ) {
				if ( ! headers_sent() ) {
					header( 'Server-Timing: powgate', false ); // Tells assets/page.js that the token is spent.
				}
				powgate_require();
			}
		}
	}
}

/**
 * The fields of a body that PHP leaves alone, and handlers of the REST API read: JSON, and what a form sends by PUT.
 */
function powgate_body(): array {
	static $fields = null;
	if ( null === $fields ) {
		$is_form = empty( $_POST ) && preg_match( '~json|x-www-form-urlencoded~i', $_SERVER['CONTENT_TYPE'] ?? '' ); // no upload
		$body    = $is_form ? file_get_contents( 'php://input' ) : '';
		$fields  = json_decode( $body, true );
		if ( ! is_array( $fields ) ) {
			@parse_str( $body, $fields ); // phpcs:ignore WordPress.PHP.NoSilencedErrors.Discouraged -- it warns of too many fields.
		}
	}
	return $fields;
}

/**
 * What a script has packed into the field `data`, as a URL has it: Fluent Forms sends a form so.
 *
 * @param array $fields Without slashes.
 */
function powgate_packed( array $fields ): array {
	$data = $fields['data'] ?? '';
	@parse_str( is_string( $data ) ? $data : '', $packed ); // phpcs:ignore WordPress.PHP.NoSilencedErrors.Discouraged -- it warns of too many fields.
	return $packed;
}

/**
 * What was sent under a name as HTML has it, such as `form_fields[name]` or `my.field`: PHP keeps it in lists, or with `_`.
 *
 * @param array  $fields Of the form, without slashes.
 * @param string $name   A list if it has `[]`.
 * @return mixed Null if there is nothing.
 */
function powgate_sent( array $fields, string $name ) {
	$name = rawurlencode( explode( '[]', $name, 2 )[0] );
	parse_str( str_replace( array( '%5B', '%5D' ), array( '[', ']' ), $name ), $path );
	$sent = empty( $path ) ? null : $fields;
	for ( ; is_array( $path ) && ! empty( $path ); $path = current( $path ) ) {
		$sent = is_array( $sent ) ? $sent[ key( $path ) ] ?? null : null;
	}
	return $sent;
}

/**
 * Whether a form's handler may take what was sent for a value. It may make a number of it (of a list too), clean it by a function
 * of WordPress, or ignore case.
 *
 * @param mixed  $sent  Without slashes.
 * @param string $value Of the setting.
 */
function powgate_is_like( $sent, string $value ): bool {
	if ( is_array( $sent ) ) {
		return true;
	}
	// As absint() compares them, without its (int), since PHP 8.5 warns of that of `1e1000`.
	$number = floor( abs( (float) $value ) );
	$equal  = is_numeric( $value ) && floor( abs( (float) $sent ) ) === $number;
	// Any word is 0 as a number; a handler that takes it for 0 takes a form without the field, too, which no rule can find.
	if ( $equal && ( $number > 0 || '' === $sent || is_numeric( $sent ) ) ) {
		return true;
	}
	foreach ( '' === $value ? array( 'trim' ) : array( 'trim', 'sanitize_text_field', 'sanitize_key', 'sanitize_title' ) as $clean ) {
		// A handler that cleans what was sent knows its form by a value that cleaning does not change.
		if ( 0 === strcasecmp( $clean( $value ), $value ) && 0 === strcasecmp( $clean( $sent ), $value ) ) {
			return true;
		}
	}
	return false;
}

/**
 * Ends the request with a page for the visitor, unless its token is good. The page has the form again, with all that was
 * typed, and no link back, which would lose it in some browsers.
 */
function powgate_require() {
	$verdict = powgate_verify();
	if ( true === $verdict ) {
		return;
	}
	$page = '<p>' . esc_html( $verdict->get_error_message() ) . '</p>';
	if ( ! wp_doing_ajax() && ! wp_is_json_request() ) {
		$files = powgate_files( wp_list_pluck( $_FILES, 'name' ) );
		$page .= sprintf(
			'<form method="post"%s>%s%s%s<button class="button">%s</button></form><script src="%s/widget.js" async></script><script src="%s" async></script>', // phpcs:ignore WordPress.WP.EnqueuedResources.NonEnqueuedScript -- this page prints no queue.
			'' === $files ? '' : ' enctype="multipart/form-data"',
			powgate_typed( wp_unslash( $_POST ) ),
			'' === $files ? '' : '<p>' . esc_html__( 'Please choose your files again:', 'powgate' ) . "</p>$files",
			powgate_field(),
			esc_html__( 'Send again', 'powgate' ),
			esc_url( powgate_setting( 'url' ) ),
			esc_url( plugins_url( 'assets/page.js', __DIR__ ) )
		);
	}
	wp_die( $page, esc_html__( 'Not sent yet', 'powgate' ), $verdict->get_error_data()['status'] ); // phpcs:ignore WordPress.Security.EscapeOutput.OutputNotEscaped -- escaped where it is made.
}

/**
 * The form's fields again, with what was typed: long texts can be read and changed, the others are hidden.
 *
 * @param array  $fields Of the form.
 * @param string $prefix Of nested names.
 */
function powgate_typed( array $fields, string $prefix = '' ): string {
	unset( $fields['powgate-token'] );
	$html = '';
	foreach ( $fields as $key => $value ) {
		$name = '' === $prefix ? $key : "{$prefix}[$key]";
		if ( is_array( $value ) ) {
			$html .= powgate_typed( $value, $name );
		} elseif ( 'comment' === $name || strlen( $value ) > 60 || false !== strpos( $value, "\n" ) ) {
			$html .= sprintf( '<p><textarea name="%1$s" aria-label="%1$s" rows="6" style="width:100%%">%2$s</textarea></p>', esc_attr( $name ), "\n" . esc_textarea( $value ) );
		} else {
			$html .= sprintf( '<input type="hidden" name="%s" value="%s">', esc_attr( $name ), esc_attr( $value ) );
		}
	}
	return $html;
}

/**
 * A field for each file that came with the form, because it is not kept.
 *
 * @param array  $names  The files' names, by the fields' names.
 * @param string $prefix Of nested names.
 */
function powgate_files( array $names, string $prefix = '' ): string {
	$html = '';
	foreach ( $names as $key => $file ) {
		$name = '' === $prefix ? $key : "{$prefix}[$key]";
		if ( is_array( $file ) ) {
			$html .= powgate_files( $file, $name );
		} elseif ( '' !== $file ) {
			$html .= sprintf( '<p><label>%s <input type="file" name="%s"></label></p>', esc_html( $file ), esc_attr( $name ) );
		}
	}
	return $html;
}
