<?php
// Where WordPress finds the server of the checks.
define('DB_HOST', getenv('CHECK_HOST') . ':' . getenv('CHECK_PORT'));
define('DB_NAME', getenv('CHECK_DATABASE'));
define('DB_USER', getenv('CHECK_USER'));
define('DB_PASSWORD', getenv('CHECK_PASSWORD'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', getenv('CHECK_COLLATION') ?: '');
// What the server refuses goes to the file that the checks read.
define('WP_DEBUG', true);
define('WP_DEBUG_DISPLAY', false);
define('WP_DEBUG_LOG', getenv('CHECK_LOG'));
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT'] as $name) {
    define($name, 'checks');
}
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
