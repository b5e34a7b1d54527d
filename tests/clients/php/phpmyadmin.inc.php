<?php
// Where phpMyAdmin finds the server of the checks, and what it must not ask of the network.
$cfg['blowfish_secret'] = str_repeat('checks', 6);
$cfg['Servers'][1] = [
    'host' => getenv('CHECK_HOST'),
    'port' => getenv('CHECK_PORT'),
    'auth_type' => 'cookie',
    'AllowNoPassword' => false,
];
$cfg['VersionCheck'] = false;
$cfg['SendErrorReports'] = 'never';
$cfg['TempDir'] = getenv('CHECK_WORK');
