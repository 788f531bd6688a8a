<?php
/**
 * Removes what the plugin has stored, on each site of a network.
 *
 * @package powgate
 */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

foreach ( array( 'powgate', 'powgate_api_key' ) as $powgate_option ) {
	delete_option( $powgate_option );
	foreach ( is_multisite() ? get_sites( 'fields=ids&number=0' ) : array() as $powgate_site ) {
		delete_blog_option( $powgate_site, $powgate_option );
	}
}
