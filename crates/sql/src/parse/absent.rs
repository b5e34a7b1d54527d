//! Kinds of objects that there are none of here: how CREATE, ALTER and DROP name them.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;

/// The kinds by their words, the longer before those that they begin with, and as errors name
/// them. Packages and sequences are MariaDB's.
const KINDS: [(&[&str], &str); 19] = [
    (&["VIEW"], "VIEW"),
    (&["PROCEDURE"], "PROCEDURE"),
    (&["FUNCTION"], "FUNCTION"),
    (&["AGGREGATE", "FUNCTION"], "AGGREGATE FUNCTION"),
    (&["TRIGGER"], "TRIGGER"),
    (&["EVENT"], "EVENT"),
    (&["PACKAGE", "BODY"], "PACKAGE BODY"),
    (&["PACKAGE"], "PACKAGE"),
    (&["SEQUENCE"], "SEQUENCE"),
    (&["USER"], "USER"),
    (&["ROLE"], "ROLE"),
    (&["SERVER"], "SERVER"),
    (&["TABLESPACE"], "TABLESPACE"),
    (&["UNDO", "TABLESPACE"], "UNDO TABLESPACE"),
    (&["LOGFILE", "GROUP"], "LOGFILE GROUP"),
    (&["RESOURCE", "GROUP"], "RESOURCE GROUP"),
    (
        &["SPATIAL", "REFERENCE", "SYSTEM"],
        "SPATIAL REFERENCE SYSTEM",
    ),
    (&["SPATIAL"], "SPATIAL INDEX"),
    (&["FULLTEXT"], "FULLTEXT INDEX"),
];

/// What begins the words that say who defines it, and how, in front of the kind.
const MANNERS: [&str; 3] = ["ALGORITHM", "DEFINER", "SQL"];

/// The kind that is named next, as errors name it; `None` if it is none of these.
pub(super) fn kind(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    if MANNERS.iter().any(|word| cursor.peek_word(word)) {
        while named(cursor).is_none() {
            if matches!(cursor.peek(), Token::EOF | Token::SemiColon) {
                return None;
            }
            cursor.skip();
        }
    }
    named(cursor)
}

fn named(cursor: &Cursor<'_>) -> Option<&'static str> {
    let found = KINDS.iter().find(|(words, _)| cursor.peek_words(words));
    found.map(|(_, name)| *name)
}
