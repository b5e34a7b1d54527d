//! Where a statement runs, by its text: on the thread that asks, on the one that answers control
//! statements, or on the workers.

/// Words that statements begin with which look at names and variables only.
const LIGHT: [&str; 8] = [
    "BEGIN",
    "COMMIT",
    "CREATE",
    "DROP",
    "RELEASE",
    "SAVEPOINT",
    "SET",
    "USE",
];
/// Words that may bring rows into them, or a value that takes its time.
const HEAVY: [&str; 6] = ["AS", "DEFAULT", "INDEX", "SELECT", "VALUES", "WITH"];
/// How long and nested they may be: to parse and plan them must not take the stack of any thread.
const LIGHT_BYTES_MAX: usize = 1 << 10;
const LIGHT_NESTING_MAX: usize = 48;

/// Whether a statement is over before another thread would have taken it up, by its text. One that
/// is not known to be so goes to a worker: others may wait for this thread.
pub(crate) fn is_light(text: &str) -> bool {
    if text.len() > LIGHT_BYTES_MAX {
        return false;
    }
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text
        .split(|letter| !is_of_word(letter))
        .filter(|word| !word.is_empty());
    let mut words = words.map(str::to_ascii_uppercase);
    let first = words.next().unwrap_or_default();
    if !LIGHT.contains(&first.as_str()) {
        return false;
    }
    let nesting = text.bytes().filter(|byte| *byte == b'(').count();
    let mut tables = 0;
    let has_heavy = words.any(|word| {
        tables += usize::from(word == "TABLE" || word == "TABLES");
        // CREATE TABLE t TABLE s; a default that calls a function.
        tables > 1 || HEAVY.contains(&word.as_str()) && (word != "DEFAULT" || nesting > 1)
    });
    match first.as_str() {
        _ if has_heavy => false,
        "SET" => nesting == 0,
        "CREATE" => tables == 1 && nesting <= LIGHT_NESTING_MAX,
        _ => true,
    }
}

/// What SHOW may name that takes no longer for many rows than for few.
const CONTROL: [&str; 18] = [
    "DATABASES",
    "ENGINE",
    "ENGINES",
    "ERRORS",
    "GRANTS",
    "MASTER",
    "PLUGINS",
    "PRIVILEGES",
    "PROCESSLIST",
    "PROFILE",
    "PROFILES",
    "REPLICA",
    "SCHEMAS",
    "SLAVE",
    "STATUS",
    "TABLES",
    "VARIABLES",
    "WARNINGS",
];

/// Whether a statement looks at the server or ends others, and computes nothing, by its text: it is
/// answered also where all workers are busy.
pub(crate) fn is_control(text: &str) -> bool {
    // A value that is computed, a condition behind the mark of a comment.
    if text.len() > LIGHT_BYTES_MAX || text.contains(['(', '/']) {
        return false;
    }
    let words = text.split(|letter: char| letter.is_whitespace() || letter == ';');
    let mut words = words.filter(|word| !word.is_empty()).peekable();
    // Most statements begin with another word, and need not be copied.
    let first = words.peek().copied().unwrap_or_default();
    if !["KILL", "SHOW"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word))
    {
        return false;
    }
    let words: Vec<_> = words.map(str::to_ascii_uppercase).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["KILL", id] | ["KILL", "QUERY" | "CONNECTION", id] => {
            id.bytes().all(|byte| byte.is_ascii_digit())
        }
        ["SHOW", "FULL" | "GLOBAL" | "SESSION", what, ..] | ["SHOW", what, ..] => {
            CONTROL.contains(&what) && !words.iter().any(|word| word == "WHERE")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_statements_compute_nothing() {
        for text in [
            "KILL 7",
            "kill query 7;",
            "KILL CONNECTION 7",
            "SHOW PROCESSLIST",
            "show full processlist;",
            "SHOW GLOBAL STATUS LIKE 'Threads%'",
            "SHOW WARNINGS LIMIT 3",
            "SHOW TABLES",
        ] {
            assert!(is_control(text), "{text}");
        }
        for text in [
            "KILL (SELECT 7)",
            "KILL @a",
            "KILL 7 + 1",
            "SHOW STATUS WHERE Value IN (SELECT 1)",
            "SHOW STATUS WHERE Value",
            "SHOW STATUS /*!WHERE*/ Value",
            "SHOW COLUMNS FROM 'a file'",
            "SHOW CREATE TABLE t",
            "SELECT 1",
            "",
        ] {
            assert!(!is_control(text), "{text}");
        }
    }
}
