//! Statements as they may be shown to others: without the passwords that they give.

use std::borrow::Cow;

use super::lexer::{Lexeme, Lexer};

/// What stands in the place of a password, as in MySQL's logs.
const SECRET: &str = "<secret>";

/// A statement whose texts behind IDENTIFIED BY, and behind PASSWORD where that is about accounts
/// or servers, are hidden. It may be one that fails, or the first part of one.
pub fn without_passwords(statement: &str) -> Cow<'_, str> {
    // Names in double quotes are hidden too where ANSI_QUOTES is set.
    let mut lexer = Lexer::new(statement, false);
    let mut state = State::default();
    let mut shown = String::new();
    let mut copied = 0;
    while let Some((lexeme, place)) = lexer.next_with_place() {
        let piece = statement.get(place.clone()).unwrap_or_default();
        let is_secret = match lexeme {
            Lexeme::Word(word) => {
                state.read(word);
                false
            }
            // A parameter tells nothing.
            Lexeme::Literal => piece != "?",
            // Hashes are written in hexadecimal digits.
            Lexeme::Number => !piece.bytes().all(|byte| byte.is_ascii_digit()),
            Lexeme::Name(_) | Lexeme::Mark(_) => false,
        };
        if is_secret && state.is_secret {
            shown.push_str(statement.get(copied..place.start).unwrap_or_default());
            shown.push_str(SECRET);
            copied = place.end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(statement);
    }
    shown.push_str(statement.get(copied..).unwrap_or_default());
    Cow::Owned(shown)
}

/// What has been read of a statement.
#[derive(Default)]
struct State {
    has_begun: bool,
    /// Whether it defines something.
    is_definition: bool,
    /// Whether PASSWORD is followed by one.
    is_on_accounts: bool,
    /// Whether the word before was IDENTIFIED.
    is_identified: bool,
    /// Whether passwords follow.
    is_secret: bool,
}

impl State {
    fn read(&mut self, word: &str) {
        let is = |others: &[&str]| others.iter().any(|other| other.eq_ignore_ascii_case(word));
        if !self.has_begun {
            self.has_begun = true;
            self.is_definition = is(&["CREATE", "ALTER"]);
            self.is_on_accounts = is(&["SET", "GRANT", "CHANGE", "START"]);
        }
        self.is_on_accounts |= self.is_definition && is(&["USER", "SERVER"]);
        let start = word.len().saturating_sub("password".len());
        let end = word.get(start..).unwrap_or_default();
        let is_password = end.eq_ignore_ascii_case("password");
        self.is_secret |= self.is_on_accounts && is_password;
        self.is_secret |= self.is_identified && is(&["BY", "WITH", "VIA"]);
        self.is_identified = is(&["IDENTIFIED"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden() {
        for (statement, expected) in [
            (
                "create user 'bob'@'%' identified by 'sEcret1', eve identified by \"x''y\" comment 'a'",
                "create user 'bob'@'%' identified by <secret>, eve identified by <secret> comment <secret>",
            ),
            (
                "ALTER USER bob IDENTIFIED WITH p AS 0x4142 REPLACE 'old' PASSWORD EXPIRE INTERVAL 90 DAY",
                "ALTER USER bob IDENTIFIED WITH p AS <secret> REPLACE <secret> PASSWORD EXPIRE INTERVAL 90 DAY",
            ),
            (
                "/* a */ set password='s' -- end",
                "/* a */ set password=<secret> -- end",
            ),
            (
                "SET PASSWORD FOR bob = PASSWORD('s')",
                "SET PASSWORD FOR bob = PASSWORD(<secret>)",
            ),
            (
                "SET @root_password := 's'",
                "SET @root_password := <secret>",
            ),
            (
                "GRANT ALL ON *.* TO b IDENTIFIED BY 's",
                "GRANT ALL ON *.* TO b IDENTIFIED BY <secret>",
            ),
            (
                "crate user b identified by 's\\",
                "crate user b identified by <secret>",
            ),
            (
                "CHANGE MASTER TO MASTER_PASSWORD='s'",
                "CHANGE MASTER TO MASTER_PASSWORD=<secret>",
            ),
            (
                "CREATE SERVER s OPTIONS (PASSWORD 's')",
                "CREATE SERVER s OPTIONS (PASSWORD <secret>)",
            ),
        ] {
            assert_eq!(without_passwords(statement), expected);
        }
    }

    #[test]
    fn other_statements_stay_as_they_are() {
        for statement in [
            "",
            "SELECT password FROM t WHERE name = 'bob'",
            "CREATE TABLE t (password TEXT DEFAULT ('x'), identified TEXT COMMENT 'y')",
            "SET @a = 'password'",
            "ALTER USER bob IDENTIFIED BY ?",
            "INSERT INTO t VALUES ('identified by', 'x')",
        ] {
            assert!(
                matches!(without_passwords(statement), Cow::Borrowed(_)),
                "{statement}"
            );
        }
    }
}
