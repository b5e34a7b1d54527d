<?php
// What the checks of PHP's mappers have in common: where the server is, and how checks are run.

$mariadb = getenv('CHECK_SERVER') === 'mariadb';

function equal($found, $expected)
{
    if ($found !== $expected) {
        throw new Exception(json_encode($found) . ', expected ' . json_encode($expected));
    }
}

/** Fails unless this is refused with an error of this number. */
function refused(int $number, callable $act)
{
    try {
        $act();
    } catch (Throwable $error) {
        for ($cause = $error; $cause !== null; $cause = $cause->getPrevious()) {
            if ($cause instanceof PDOException && ($cause->errorInfo[1] ?? null) === $number) {
                return $error;
            }
        }
        throw $error;
    }
    throw new Exception('it was not refused');
}

/** Runs checks, prints a line for each, and ends the program: with 1 if one has failed. */
function run(array $checks)
{
    $failed = false;
    foreach ($checks as $name => $check) {
        try {
            $check();
            echo "$name\tok\n";
        } catch (Throwable $error) {
            $failed = true;
            $line = $error->getLine();
            foreach ($error->getTrace() as $frame) {
                if (str_ends_with($frame['file'] ?? '', '_checks.php')) {
                    $line = $frame['line'];
                    break;
                }
            }
            $text = preg_replace('/\s+/', ' ', get_class($error) . ': ' . $error->getMessage());
            echo "$name\tFAIL\tline $line: ", substr($text, 0, 700), "\n";
        }
    }
    exit($failed ? 1 : 0);
}
