<?php
// Redeems powgate tokens. PHP 8, no extension.

/** No answer, a limit, a wrong key: never a pass. The message says which; it is for your log. */
class NoVerdict extends Exception {}

function powgate_setting(string $name, string $start): string {
    $value = trim((string) getenv($name)); // many files of secrets end with a newline
    if (str_starts_with($value, $start)) return $value;
    throw new NoVerdict($name . ($value === '' ? ' is not set' : " does not begin with $start"));
}

/** Null for a token that is good; otherwise a code such as "token-used". Throws NoVerdict. */
function verify(mixed $token, string $ip, int $retries = 2): ?string {
    if (!is_string($token) || $token === '') return 'token-missing';
    if (strlen($token) > 1024) return 'invalid-body'; // powgate says the same, and of a far longer one nothing
    $url = rtrim(powgate_setting('POWGATE_URL', 'http'), '/') . '/verify-token';
    // The key is new for each call, and the same for its retries: they are one redemption.
    $request = ['token' => $token, 'expectedIp' => $ip, 'idempotencyKey' => bin2hex(random_bytes(16))];
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ['Authorization: Bearer ' . powgate_setting('POWGATE_API_KEY', 'sk_'), 'Content-Type: application/json'],
        'content' => json_encode($request, JSON_INVALID_UTF8_SUBSTITUTE),
        'timeout' => 1,
        'ignore_errors' => true,
        'follow_location' => 0,
    ]]);
    for ($attempt = 0; $attempt <= $retries; $attempt++) {
        error_clear_last();
        $stream = @fopen($url, 'r', false, $context);
        $status = $stream ? (int) substr(stream_get_meta_data($stream)['wrapper_data'][0] ?? '', 9, 3) : 0;
        $answer = json_decode($stream ? (string) stream_get_contents($stream) : '', true);
        if ($status === 200 && ($answer['success'] ?? null) === true)
            return null;
        if ($status === 400 && isset($answer['code'])) return $answer['code'];
        if (!in_array($status, [0, 200, 502, 503, 504], true)) break;
        if ($attempt < $retries) usleep(100_000 * 2 ** $attempt);
    }
    if ($status === 0) throw new NoVerdict('no answer: ' . (error_get_last()['message'] ?? $url));
    throw new NoVerdict("status $status, " . ($answer['code'] ?? 'which is no verdict'));
}

/** For the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token. */
function words(string $code): string {
    if ($code !== 'token-missing') return "We could not check that you are a person ($code). Please send the form again.";
    return 'We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again.';
}

if (realpath($argv[0] ?? '') === __FILE__) {
    $code = verify($argv[1], $argv[2]);
    echo $code === null ? 'ok' : words($code), "\n";
}
