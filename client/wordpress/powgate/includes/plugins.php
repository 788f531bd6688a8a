<?php
/**
 * Forms of other plugins, by the hooks that they document.
 *
 * @package powgate
 */

defined( 'ABSPATH' ) || exit;

/**
 * Adds what is ticked. Hooks of a plugin that is not there are never called.
 */
function powgate_add_plugin_forms() {
	$asks = ! powgate_spares_user();
	if ( $asks && powgate_is_on( 'cf7' ) ) {
		add_filter( 'wpcf7_form_elements', 'powgate_cf7_field' );
		add_filter( 'wpcf7_spam', 'powgate_cf7_check', 10, 2 );
	}
	if ( powgate_is_on( 'woocommerce' ) ) {
		foreach ( array( 'login_form', 'register_form', 'lostpassword_form' ) as $form ) {
			add_action( "woocommerce_$form", 'powgate_print_field' );
		}
		add_filter( 'woocommerce_process_login_errors', 'powgate_refuse' );
		add_filter( 'woocommerce_process_registration_errors', 'powgate_refuse' );
		add_action( 'lostpassword_post', 'powgate_check_woocommerce_password' );
		if ( $asks ) {
			add_action( 'woocommerce_checkout_before_order_review', 'powgate_print_field' );
			add_action( 'woocommerce_after_checkout_validation', 'powgate_check_checkout', 10, 2 );
		}
	}
	if ( $asks && powgate_is_on( 'wpforms' ) ) {
		add_action( 'wpforms_display_submit_before', 'powgate_print_field' );
		add_action( 'wpforms_process', 'powgate_wpforms_check', 5, 3 ); // Stripe takes the payment at 10.
	}
	if ( $asks && powgate_is_on( 'gravityforms' ) ) {
		add_filter( 'gform_submit_button', 'powgate_before_button' );
		add_filter( 'gform_pre_process', 'powgate_gravity_save' );
		add_filter( 'gform_validation', 'powgate_gravity_check', 10, 2 );
		add_filter( 'gform_get_form_save_confirmation_filter', 'powgate_gravity_link_field' );
		if ( isset( $_POST['gform_send_resume_link'] ) ) { // phpcs:ignore WordPress.Security.NonceVerification.Missing -- mails the link.
			powgate_require();
		}
	}
}

/**
 * Contact Form 7: the element before the button, or at the end of a form without one.
 *
 * @param string $html The form's elements.
 */
function powgate_cf7_field( $html ): string {
	$field  = powgate_field();
	$button = (int) strpos( $html, 'wpcf7-submit' );
	$found  = preg_match( '/.*(?=<p[\s>])/s', substr( $html, 0, $button ), $before ); // No <picture> or <path>.
	return $found ? substr_replace( $html, $field, strlen( $before[0] ), 0 ) : $html . $field;
}

/**
 * Contact Form 7 calls this when all fields are right. Its message for spam becomes ours.
 *
 * @param bool   $is_spam    What an earlier filter says.
 * @param object $submission Of Contact Form 7.
 */
function powgate_cf7_check( $is_spam, $submission ): bool {
	$verdict = $is_spam ? true : powgate_verify();
	if ( true === $verdict ) {
		return (bool) $is_spam;
	}
	$words = $verdict->get_error_message();
	$entry = array(
		'agent'  => 'powgate',
		'reason' => $words,
	);
	$submission->add_spam_log( $entry );
	$replace = static function ( $message, $status ) use ( $words ) {
		return 'spam' === $status ? $words : $message;
	};
	add_filter( 'wpcf7_display_message', $replace, 10, 2 );
	return true;
}

/**
 * WooCommerce's checkout, which keeps its fields and shows the error above them. PayPal's button has them validated before the
 * buyer pays there and the form arrives. Some buttons of Apple Pay and Google Pay send no form: the filter may spare their orders.
 *
 * @param array    $data   Of the order.
 * @param WP_Error $errors So far.
 */
function powgate_check_checkout( $data, $errors ) {
	$verify  = did_action( 'woocommerce_checkout_process' ) ? 'powgate_verify_noted' : 'powgate_verify_early';
	$asks    = ! $errors->has_errors() && apply_filters( 'powgate_asks_checkout', true );
	$verdict = $asks ? $verify( 'checkout' ) : true;
	if ( true !== $verdict ) {
		$errors->add( 'powgate', $verdict->get_error_message() );
	}
}

/**
 * WooCommerce's form for a lost password calls WordPress' hook.
 *
 * @param WP_Error $errors So far.
 */
function powgate_check_woocommerce_password( $errors ) {
	if ( isset( $_POST['wc_reset_password'] ) ) { // phpcs:ignore WordPress.Security.NonceVerification.Missing -- WooCommerce has checked it.
		powgate_refuse( $errors );
	}
}

/**
 * WPForms shows errors of the form above it. If the payer's bank wants to ask (3-D Secure), Stripe ends the request before the entry
 * is saved, and the form is sent again. Only such an end notes the token, because the sender alone says which send is the first.
 *
 * @param array $fields    As sent.
 * @param array $entry     As sent.
 * @param array $form_data Of the form.
 */
function powgate_wpforms_check( $fields, $entry, $form_data ) {
	$id       = $form_data['id'];
	$errors   = &wpforms()->process->errors;
	$stripe   = $form_data['payments']['stripe'] ?? array();
	$pays     = ! empty( $stripe['enable'] ) || ! empty( $stripe['enable_one_time'] ) || ! empty( $stripe['enable_recurring'] );
	$is_first = $pays && ! empty( $entry['payment_method_id'] ) && empty( $entry['payment_intent_id'] );
	if ( ! empty( $errors[ $id ] ) ) {
		return;
	}
	$verdict = $is_first ? powgate_verify() : powgate_verify_noted( "wpforms $id" );
	if ( true !== $verdict ) {
		$errors[ $id ]['header'] = $verdict->get_error_message();
	} elseif ( $is_first ) {
		$name  = powgate_note( "wpforms $id" );
		$note  = static function () use ( $name ) {
			set_transient( $name, 1, POWGATE_NOTED_SECONDS );
		};
		$go_on = static function () use ( $note ) {
			remove_action( 'shutdown', $note );
		};
		add_action( 'shutdown', $note );
		add_action( 'wpforms_process', $go_on, PHP_INT_MAX );
	}
}

/**
 * Gravity Forms validates no form that it only saves ("Save and continue"), and mails then. Without a token it saves none, but
 * validates the form as if it were submitted, and powgate_gravity_check() refuses it.
 *
 * @param array $form To be processed.
 */
function powgate_gravity_save( $form ) {
	if ( ! empty( $_POST['gform_save'] ) && true !== powgate_verify_noted( "gravity {$form['id']}" ) ) { // phpcs:ignore WordPress.Security.NonceVerification.Missing -- the token takes a nonce's place.
		$_POST['gform_save'] = '0'; // Other sends have '' or nothing.
	}
	return $form;
}

/**
 * Gravity Forms' form that mails the link to a saved form.
 *
 * @param string $html With the form, if the owner has put it there.
 */
function powgate_gravity_link_field( $html ): string {
	$button = "<input type='submit' name='gform_send_resume_link_button'";
	return str_replace( $button, powgate_field() . $button, $html );
}

/**
 * Gravity Forms, when the form would be submitted. Scripts of payments may have it validated before.
 *
 * @param array  $result  With is_valid and form.
 * @param string $context `api-validate` if this only validates.
 */
function powgate_gravity_check( $result, $context = '' ) {
	$form    = $result['form'];
	$saves   = '0' === ( $_POST['gform_save'] ?? '' ); // phpcs:ignore WordPress.Security.NonceVerification.Missing -- of powgate_gravity_save().
	$asks    = $saves || ( $result['is_valid'] && GFFormDisplay::is_last_page( $form ) );
	$verify  = 'api-validate' === $context ? 'powgate_verify_early' : 'powgate_verify_noted';
	$verdict = $asks ? $verify( "gravity {$form['id']}" ) : true;
	if ( true !== $verdict ) {
		$result['is_valid'] = false;
		$words              = static function () use ( $verdict ) {
			return '<div class="gform_validation_errors"><h2 class="gform_submission_error">' . esc_html( $verdict->get_error_message() ) . '</h2></div>';
		};
		add_filter( 'gform_validation_message', $words );
	}
	return $result;
}
