//! What statements have in common but for their constants: MySQL's DIGEST_TEXT and DIGEST.
//!
//! ```text
//! select a.b, count(*) from a where x in (1, 2) and y = -3 -- here
//! SELECT `a` . `b` , COUNT ( * ) FROM `a` WHERE `x` IN (...) AND `y` = ?
//! ```
//!
//! Owns the normal form of a text: keywords are in upper case, names in backticks, literals are
//! `?`, lists of them `?, ...`, rows of them `(...)`, more rows `(...) , ...` in a comment. The
//! digest is the SHA-256 of that text, which nobody needs before the digest is shown. MySQL hashes
//! the numbers of its own tokens, so its digests are others.
//!
//! **Never** fails: what is no SQL has a digest too.
//!
//! **Cost**: one pass over at most `READ_BYTES_MAX` bytes, some 100 ns a word. For statements
//! that differ in the name of a table there is [`Tail`].
//!
//! **Source**: the grammar of reductions that MySQL's manual shows in "Performance Schema Statement
//! Digests and Sampling".

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod lexer;
mod secrets;
mod token;
mod words;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};

use sha2::{Digest as _, Sha256};

use lexer::{Lexeme, Lexer};
use token::Token;
use words::{Place, is_keyword};

pub use secrets::without_passwords;

/// The longest text of a digest, in bytes: MySQL's `max_digest_length`. What comes behind it
/// makes no difference.
pub const TEXT_BYTES_MAX: usize = 1024;

/// What is read of a statement, in bytes. Only a statement of very many constants is longer.
const READ_BYTES_MAX: usize = 256 << 10;

/// What is read of a normal form, in bytes: enough that what comes behind changes nothing in the
/// first [`TEXT_BYTES_MAX`].
const NORMAL_BYTES_MAX: usize = 2 * TEXT_BYTES_MAX;

/// What is read of a statement: texts that begin with the same have one digest.
pub fn read_part(statement: &str) -> &str {
    let end = statement.floor_char_boundary(READ_BYTES_MAX);
    statement.get(..end).unwrap_or_default()
}

/// What statements have in common but for their constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    hash: u64,
    text: String,
}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Digest {
    /// The digest of a statement; `ansi_quotes` says whether double quotes hold a name.
    pub fn of(statement: &str, ansi_quotes: bool) -> Digest {
        let normal = Normal::read(Vec::new(), statement, ansi_quotes);
        let tail = Tail::new(&normal.tokens);
        Digest::new(tail.cut(TEXT_BYTES_MAX).to_owned())
    }

    /// The digest of a statement that begins with keywords and the name of a table.
    pub fn with_name(keywords: &str, name: &str, tail: &Tail) -> Digest {
        let mut text = format!("{keywords} `{name}`");
        let behind = tail.cut(TEXT_BYTES_MAX.saturating_sub(text.len() + 1));
        if !behind.is_empty() {
            text.push(' ');
            text.push_str(behind);
        }
        Digest::new(text)
    }

    fn new(text: String) -> Digest {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let hash = hasher.hash_one(&text);
        Digest { hash, text }
    }

    /// The normal form: DIGEST_TEXT.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A number that digests of the same text have in common.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether it ends in rows of literals, and is the same for any number of them above one.
    pub fn ends_in_rows(&self) -> bool {
        let is_rows = |token: Token<'_>| self.text.ends_with(token.fixed());
        is_rows(Token::Rows) || is_rows(Token::SingleRows)
    }

    /// DIGEST: the SHA-256 of the text in 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        let bytes = Sha256::digest(self.text.as_bytes());
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The normal form of what stands behind the name of a table.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    text: String,
    /// Where the tokens end in it.
    ends: Vec<usize>,
}

impl Tail {
    /// Of a text behind a name.
    pub fn of(text: &str, ansi_quotes: bool) -> Tail {
        let normal = Normal::read(vec![Token::Name("")], text, ansi_quotes);
        Tail::new(normal.tokens.get(1..).unwrap_or_default())
    }

    fn new(tokens: &[Token<'_>]) -> Tail {
        let mut tail = Tail::default();
        let mut needs_space = false;
        for token in tokens {
            if needs_space {
                tail.text.push(' ');
            }
            token.write(&mut tail.text);
            tail.ends.push(tail.text.len());
            needs_space = !matches!(token, Token::Mark("@" | "@@"));
        }
        tail
    }

    /// The tokens that so many bytes have room for.
    fn cut(&self, bytes: usize) -> &str {
        let count = self.ends.partition_point(|end| *end <= bytes);
        let last = count.checked_sub(1).and_then(|last| self.ends.get(last));
        let end = last.copied().unwrap_or_default();
        self.text.get(..end).unwrap_or_default()
    }
}

/// The normal form as far as it has been read.
#[derive(Default)]
struct Normal<'a> {
    tokens: Vec<Token<'a>>,
    length: usize,
    /// CASE without its END.
    open_cases: usize,
    /// Whether what is read computes rows, and does not define or show something.
    is_on_rows: bool,
}

impl<'a> Normal<'a> {
    /// Reads a statement, or what stands behind some tokens of it.
    fn read(before: Vec<Token<'a>>, statement: &'a str, ansi_quotes: bool) -> Normal<'a> {
        let mut lexer = Lexer::new(read_part(statement), ansi_quotes);
        let mut normal = Normal {
            tokens: before,
            ..Normal::default()
        };
        while let Some(lexeme) = lexer.next()
            && normal.add(lexeme, lexer.next_byte())
        {}
        normal
    }

    /// Adds what was read, before `next_byte`, which is 0 at the end; `false` where there is no
    /// room.
    fn add(&mut self, lexeme: Lexeme<'a>, next_byte: u8) -> bool {
        match lexeme {
            Lexeme::Mark(";") => true,
            Lexeme::Mark(")") => self.close(),
            Lexeme::Mark(mark) => self.push(Token::Mark(mark)),
            Lexeme::Name(name) => self.push(Token::Name(name)),
            Lexeme::Literal => self.value(),
            Lexeme::Number => {
                self.drop_signs();
                self.value()
            }
            Lexeme::Word(word) => self.word(word, next_byte),
        }
    }

    fn word(&mut self, word: &'a str, next_byte: u8) -> bool {
        let before = self.tokens.last().copied();
        let is_null = word.eq_ignore_ascii_case("null");
        if is_null && before.is_some_and(|it| it.begins_expression() && !it.is_word("not")) {
            return self.value();
        }
        let place = Place {
            before,
            next_byte,
            is_in_case: self.open_cases > 0,
            is_on_rows: self.is_on_rows,
        };
        if !is_keyword(word, &place) {
            return self.push(Token::Name(word));
        }
        if word.eq_ignore_ascii_case("case") {
            self.open_cases += 1;
        } else if word.eq_ignore_ascii_case("end") {
            self.open_cases = self.open_cases.saturating_sub(1);
        }
        self.is_on_rows |= words::computes_rows(word);
        self.push(Token::Word(word))
    }

    /// Takes the signs of a number away: those that are no operators between two values.
    fn drop_signs(&mut self) {
        while let [.., before, Token::Mark("-" | "+")] = self.tokens.as_slice()
            && before.begins_expression()
        {
            self.pop(1);
        }
    }

    fn value(&mut self) -> bool {
        let is_list = matches!(
            self.tokens.as_slice(),
            [.., Token::Value | Token::Values, Token::Mark(",")]
        );
        if is_list {
            self.pop(2);
        }
        self.push(if is_list { Token::Values } else { Token::Value })
    }

    /// Adds a closing parenthesis.
    fn close(&mut self) -> bool {
        let (row, rows) = match self.tokens.as_slice() {
            [.., Token::Mark("("), Token::Value] => (Token::SingleRow, Token::SingleRows),
            [.., Token::Mark("("), Token::Values] => (Token::Row, Token::Rows),
            _ => return self.push(Token::Mark(")")),
        };
        self.pop(2);
        match self.tokens.as_slice() {
            [.., before, Token::Mark(",")] if *before == row || *before == rows => {
                self.pop(2);
                self.push(rows)
            }
            [.., before] if before.is_word("in") => {
                self.pop(1);
                self.push(Token::InValues)
            }
            _ => self.push(row),
        }
    }

    fn push(&mut self, token: Token<'a>) -> bool {
        let length = self.length + token.length();
        let has_room = length <= NORMAL_BYTES_MAX;
        if has_room {
            self.length = length;
            self.tokens.push(token);
        }
        has_room
    }

    fn pop(&mut self, count: usize) {
        for _ in 0..count {
            let gone = self.tokens.pop().map_or(0, Token::length);
            self.length = self.length.saturating_sub(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(statement: &str, expected: &str) {
        assert_eq!(Digest::of(statement, false).text(), expected, "{statement}");
    }

    /// As MariaDB 10.11 answers, but for names that its keywords hide.
    #[test]
    fn constants_are_question_marks() {
        for (statement, expected) in [
            (
                "INSERT INTO t VALUES (1, -2, 'x', NULL)",
                "INSERT INTO `t` VALUES (...)",
            ),
            (
                "insert into t (a) values (1), (2);",
                "INSERT INTO `t` ( `a` ) VALUES (?) /* , ... */",
            ),
            (
                "INSERT t VALUES (1,2),(3,4),(5,6)",
                "INSERT `t` VALUES (...) /* , ... */",
            ),
            (
                "INSERT INTO t VALUES (1, 2), (2, DEFAULT)",
                "INSERT INTO `t` VALUES (...) , ( ? , DEFAULT )",
            ),
            (
                "SELECT @@version_comment limit 1",
                "SELECT @@`version_comment` LIMIT ?",
            ),
            (
                "SELECT @x, \"a\"\"b\", 'it''s \\' ', 1.5e-3",
                "SELECT @`x` , ?, ...",
            ),
            (
                "SELECT x'41', 0x41, b'1', .5, N'a', _utf8mb4 'b'",
                "SELECT ?, ...",
            ),
            (
                "SELECT (1), (2), (3, 4) = (5, 6)",
                "SELECT (?) /* , ... */ , (...) = (...)",
            ),
            (
                "UPDATE t SET a = a -1, b = + - 2",
                "UPDATE `t` SET `a` = `a` - ? , `b` = ?",
            ),
            (
                "SELECT a FROM t WHERE b IN (5) OR b NOT IN (?, ?)",
                "SELECT `a` FROM `t` WHERE `b` IN (...) OR `b` NOT IN (...)",
            ),
            (
                "SELECT a FROM t LIMIT 5, 10",
                "SELECT `a` FROM `t` LIMIT ?, ...",
            ),
            (
                "SELECT a <> 5, a IS NOT NULL, a = NULL",
                "SELECT `a` != ? , `a` IS NOT NULL , `a` = ?",
            ),
        ] {
            check(statement, expected);
        }
    }

    #[test]
    fn keywords_are_in_upper_case_and_names_in_backticks() {
        for (statement, expected) in [
            (
                "select t.a, count(*), length(b), `from` from test.t as t -- end",
                "SELECT `t` . `a` , COUNT ( * ) , `length` ( `b` ) , `from` FROM `test` . `t` AS `t`",
            ),
            (
                "select case when status = 1 then 2 else 3 end, value from t order by a desc",
                "SELECT CASE WHEN `status` = ? THEN ? ELSE ? END , `value` FROM `t` ORDER BY `a` DESC",
            ),
            (
                "select date_add(d, interval 1 day) from t limit 1 offset 2",
                "SELECT DATE_ADD ( `d` , INTERVAL ? DAY ) FROM `t` LIMIT ? OFFSET ?",
            ),
            (
                "create temporary table t (id int not null auto_increment primary key, comment text)",
                "CREATE TEMPORARY TABLE `t` ( `id` INT NOT NULL AUTO_INCREMENT PRIMARY KEY , \
                 `comment` TEXT )",
            ),
            (
                "show full tables from db like 'a%'",
                "SHOW FULL TABLES FROM `db` LIKE ?",
            ),
            ("begin", "BEGIN"),
            (
                "insert into t values (1) on duplicate key update a = 1",
                "INSERT INTO `t` VALUES (?) ON DUPLICATE KEY UPDATE `a` = ?",
            ),
            (
                "select /*+ hint */ a /*! from */ t # more",
                "SELECT `a` FROM `t`",
            ),
        ] {
            check(statement, expected);
        }
        assert_eq!(Digest::of("SELECT \"a\"", true).text(), "SELECT `a`");
    }

    #[test]
    fn what_is_no_sql_has_a_digest() {
        for statement in [
            "",
            ";",
            "'",
            "`",
            "/*",
            "1e",
            "@",
            "\u{e9}\u{0}\\",
            "/*!5 (",
            "x'",
        ] {
            Digest::of(statement, false);
        }
        check("", "");
        check("selec 5", "SELEC ?");
    }

    #[test]
    fn a_digest_is_short_and_tells_texts_apart() {
        let columns: Vec<String> = (0..500).map(|number| format!("c{number}")).collect();
        let long = format!("SELECT {} FROM t", columns.join(", "));
        let digest = Digest::of(&long, false);
        assert!(digest.text.len() <= TEXT_BYTES_MAX);
        assert!(digest.text.len() > TEXT_BYTES_MAX - 16);
        assert_eq!(digest.hex().len(), 64);
        let rows =
            |count: usize| format!("INSERT INTO t VALUES {}", vec!["(1, 2)"; count].join(","));
        let many = Digest::of(&rows(5000), false);
        assert_eq!(many, Digest::of(&rows(2), false));
        assert_ne!(many, Digest::of(&rows(1), false));
        assert!(many.ends_in_rows());
        assert!(Digest::of("INSERT INTO t VALUES (1), (2)", false).ends_in_rows());
        let by_default = Digest::of("INSERT INTO t VALUES (1, DEFAULT), (2, DEFAULT)", false);
        assert!(!by_default.ends_in_rows());
    }

    #[test]
    fn a_name_makes_the_digest_of_the_statement_with_that_name() {
        for columns in [1, 30, 60, 200] {
            let columns: Vec<String> = (0..columns)
                .map(|number| format!("c{number} VARCHAR(10) DEFAULT 'x', KEY (c{number}, c0)"))
                .collect();
            let rest = format!(" ({}) COMMENT = 'long'", columns.join(", "));
            let tail = Tail::of(&rest, false);
            for name in ["t", "status", "a_rather_long_name_of_a_table"] {
                let whole = Digest::of(&format!("create temporary table {name}{rest}"), false);
                let made = Digest::with_name("CREATE TEMPORARY TABLE", name, &tail);
                assert_eq!(made, whole);
            }
        }
        let dropped = Digest::with_name("DROP TABLE", "t", &Tail::default());
        assert_eq!(dropped, Digest::of("drop table t ", false));
    }
}
