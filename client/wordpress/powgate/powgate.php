<?php
/**
 * Plugin Name:       powgate
 * Description:       Keeps bots out of your forms with your own powgate service: no puzzle for people, no third party.
 * Version:           0.1.0
 * Requires at least: 6.1
 * Requires PHP:      7.4
 * Author:            The powgate authors
 * License:           GPL-2.0-or-later
 * License URI:       https://www.gnu.org/licenses/gpl-2.0.html
 * Text Domain:       powgate
 * Domain Path:       /languages
 *
 * How a form is checked: forms.php and plugins.php print the element and ask powgate_verify() when the form arrives;
 * verify.php redeems the token; settings.php says where and with which keys.
 *
 * @package powgate
 */

defined( 'ABSPATH' ) || exit;

const POWGATE_VERSION = '0.1.0';

require __DIR__ . '/includes/settings.php';
require __DIR__ . '/includes/verify.php';
require __DIR__ . '/includes/forms.php';
require __DIR__ . '/includes/plugins.php';
if ( is_admin() ) {
	require __DIR__ . '/includes/test.php';
	require __DIR__ . '/includes/page.php';
	add_action( 'admin_menu', 'powgate_add_page' );
	add_filter( 'plugin_action_links_' . plugin_basename( __FILE__ ), 'powgate_add_link' );
}

add_action( 'init', 'powgate_init', PHP_INT_MIN );

/**
 * Before any other plugin reads the form, since powgate_guard_fields() must come first.
 */
function powgate_init() {
	load_plugin_textdomain( 'powgate', false, dirname( plugin_basename( __FILE__ ) ) . '/languages' );
	wp_register_script( 'powgate-block', plugins_url( 'block/block.js', __FILE__ ), array( 'wp-blocks', 'wp-block-editor', 'wp-components', 'wp-element' ), POWGATE_VERSION, true );
	powgate_add_blocks();
	if ( powgate_is_ready() ) {
		powgate_guard_fields();
		powgate_add_core_forms();
		powgate_add_plugin_forms();
	}
}
