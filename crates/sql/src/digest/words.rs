//! Which words of a statement are keywords.
//!
//! MySQL's grammar knows. Here a word that is reserved is a keyword; one that is not is a keyword
//! where only a keyword makes sense, and a name elsewhere.

use super::token::Token;
use crate::parse::reserved::{is_listed, is_reserved};

/// Functions with a syntax or a token of their own, before a parenthesis. Sorted, as all lists.
const FUNCTIONS: &[&str] = &[
    "ADDDATE",
    "AVG",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "CAST",
    "COALESCE",
    "COUNT",
    "CUME_DIST",
    "CURDATE",
    "CURTIME",
    "DATABASE",
    "DATE_ADD",
    "DATE_SUB",
    "DENSE_RANK",
    "EXTRACT",
    "FIRST_VALUE",
    "GROUPING",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "LAG",
    "LAST_VALUE",
    "LEAD",
    "MAX",
    "MID",
    "MIN",
    "NOW",
    "NTH_VALUE",
    "NTILE",
    "PERCENT_RANK",
    "POSITION",
    "RANK",
    "ROW_NUMBER",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "SUBDATE",
    "SUBSTR",
    "SUBSTRING",
    "SUM",
    "SYSDATE",
    "TRIM",
];

/// Units of INTERVAL, behind a value; and what else follows one.
const BEHIND_VALUES: &[&str] = &[
    "DAY",
    "FOLLOWING",
    "HOUR",
    "MICROSECOND",
    "MINUTE",
    "MONTH",
    "OFFSET",
    "PRECEDING",
    "QUARTER",
    "SECOND",
    "WEEK",
    "YEAR",
];

/// A keyword and what follows it.
const PAIRS: &[(&str, &str)] = &[
    ("AS", "SIGNED"),
    ("DELETE", "QUICK"),
    ("FOR", "SHARE"),
    ("FOR", "SYSTEM_TIME"),
    ("INSERT", "DELAYED"),
    ("IS", "UNKNOWN"),
    ("ON", "DUPLICATE"),
    ("WITH", "ROLLUP"),
];

/// Keywords of statements that define or show something.
const OTHERS: &[&str] = &[
    "AFTER",
    "ALGORITHM",
    "AUTO_INCREMENT",
    "BEGIN",
    "BIT",
    "BOOL",
    "BOOLEAN",
    "BTREE",
    "CHARSET",
    "CHECKSUM",
    "COLLATION",
    "COLUMNS",
    "COMMENT",
    "COMMIT",
    "COMMITTED",
    "CONNECTION",
    "CONSISTENT",
    "DATA",
    "DATABASE",
    "DATE",
    "DATETIME",
    "DISABLE",
    "DUPLICATE",
    "ENABLE",
    "ENGINE",
    "ENGINES",
    "ENUM",
    "ERRORS",
    "EVENTS",
    "EXTENDED",
    "FIELDS",
    "FIRST",
    "FORMAT",
    "FULL",
    "FUNCTION",
    "GENERATED",
    "GLOBAL",
    "GRANTS",
    "HASH",
    "INDEXES",
    "INVISIBLE",
    "ISOLATION",
    "JSON",
    "LEVEL",
    "LOCAL",
    "LOGS",
    "MODIFY",
    "NAMES",
    "NO",
    "OFFSET",
    "ONLY",
    "OPEN",
    "PLUGINS",
    "PREPARE",
    "PRIVILEGES",
    "PROCESSLIST",
    "PROFILE",
    "PROFILES",
    "QUERY",
    "REPEATABLE",
    "REPLICA",
    "ROLLBACK",
    "ROW_FORMAT",
    "SAVEPOINT",
    "SCHEMA",
    "SERIALIZABLE",
    "SESSION",
    "SIGNED",
    "SLAVE",
    "SLOW",
    "SNAPSHOT",
    "START",
    "STATUS",
    "STORED",
    "TABLES",
    "TEMPORARY",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TRANSACTION",
    "TRIGGERS",
    "UNCOMMITTED",
    "VARIABLES",
    "VIEW",
    "VIRTUAL",
    "VISIBLE",
    "WARNINGS",
    "YEAR",
];

/// Words behind which a name stands.
const BEFORE_NAMES: &[&str] = &["DATABASE", "EXISTS", "FROM", "INTO", "JOIN", "TABLE", "USE"];

/// Words behind which an expression begins.
const BEFORE_EXPRESSIONS: &[&str] = &[
    "ALL", "AND", "BETWEEN", "BY", "CASE", "DEFAULT", "DISTINCT", "DIV", "DO", "ELSE", "HAVING",
    "IN", "INTERVAL", "LIKE", "LIMIT", "MOD", "NOT", "OFFSET", "ON", "OR", "REGEXP", "RLIKE",
    "SELECT", "THEN", "WHEN", "WHERE", "XOR",
];

/// Where a word stands.
pub(super) struct Place<'a> {
    pub(super) before: Option<Token<'a>>,
    /// The first byte behind it; 0 at the end.
    pub(super) next_byte: u8,
    pub(super) is_in_case: bool,
    /// Whether what is read computes rows, and does not define or show something.
    pub(super) is_on_rows: bool,
}

/// Whether a word is a keyword where it stands.
pub(super) fn is_keyword(word: &str, place: &Place<'_>) -> bool {
    let Some(before) = place.before else {
        return true;
    };
    let is_of_name = matches!(before, Token::Mark("." | "@" | "@@"));
    if is_of_name || place.next_byte == b'.' {
        return false;
    }
    if is_reserved(word) {
        return true;
    }
    if BEFORE_NAMES.iter().any(|other| before.is_word(other)) {
        return false;
    }
    let is = |other: &str| word.eq_ignore_ascii_case(other);
    let is_in = |list: &[&str]| is_listed(word, list);
    let is_of_quote = matches!(place.next_byte, b'\'' | b'"');
    let is_moment = || ["DATE", "TIME", "TIMESTAMP"].into_iter().any(is);
    if place.is_in_case && is("END") || is_of_quote && is_moment() {
        return true;
    }
    let is_behind = |pair: &(&str, &str)| before.is_word(pair.0) && is(pair.1);
    (place.next_byte == b'(' && is_in(FUNCTIONS))
        || (before == Token::Value && is_in(BEHIND_VALUES))
        || PAIRS.iter().any(is_behind)
        || (!place.is_on_rows && !matches!(before, Token::Mark(_)) && is_in(OTHERS))
}

/// Whether an expression begins behind a keyword.
fn begins_expression(word: &str) -> bool {
    is_listed(word, BEFORE_EXPRESSIONS)
}

/// Whether rows are computed from a keyword on.
pub(super) fn computes_rows(word: &str) -> bool {
    let words = [
        "SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "VALUES", "DO",
    ];
    words.iter().any(|other| other.eq_ignore_ascii_case(word))
}

impl Token<'_> {
    /// Whether a value must follow, so that a sign belongs to it.
    pub(super) fn begins_expression(self) -> bool {
        match self {
            Token::Mark(mark) => !matches!(mark, ")" | "." | "@" | "@@" | "?"),
            Token::Word(word) => begins_expression(word),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(FUNCTIONS.is_sorted());
        assert!(BEHIND_VALUES.is_sorted());
        assert!(OTHERS.is_sorted());
        assert!(BEFORE_EXPRESSIONS.is_sorted());
    }
}
