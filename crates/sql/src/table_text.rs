//! CREATE TEMPORARY TABLE and DROP TABLE, cut behind the name of the table.
//!
//! Programs make the same temporary table over and over, under one name or many: what stands behind
//! the name is what makes the table.
//!
//! **Never** guesses: a text that is written in any other way than `CREATE TEMPORARY TABLE name
//! (...` or `DROP [TEMPORARY] TABLE name`, with a name that needs no quotes, is left to the parser.

use crate::parse;

/// A statement on one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableText<'a> {
    /// CREATE TEMPORARY TABLE.
    Create {
        /// The name, without a database.
        name: &'a str,
        /// What stands behind it.
        rest: &'a str,
    },
    /// DROP TABLE.
    Drop {
        /// Whether TEMPORARY is there.
        temporary: bool,
        /// The name, without a database.
        name: &'a str,
    },
}

impl<'a> TableText<'a> {
    /// Cuts a statement; `None` for any other one.
    pub fn read(text: &'a str) -> Option<TableText<'a>> {
        let (verb, rest) = word(text)?;
        let is_create = verb.eq_ignore_ascii_case("CREATE");
        if !is_create && !verb.eq_ignore_ascii_case("DROP") {
            return None;
        }
        let (second, mut rest) = word(rest)?;
        let temporary = second.eq_ignore_ascii_case("TEMPORARY");
        if temporary {
            let (third, behind) = word(rest)?;
            rest = third.eq_ignore_ascii_case("TABLE").then_some(behind)?;
        } else if is_create || !second.eq_ignore_ascii_case("TABLE") {
            return None;
        }
        let (name, rest) = word(rest)?;
        let is_plain = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && name.len() <= 64
            && !parse::is_reserved(name);
        match (is_plain, is_create) {
            // `db.name` goes on with a point, LIKE and AS with a word.
            (true, true) if rest.trim_start_matches(' ').starts_with('(') => {
                Some(TableText::Create { name, rest })
            }
            (true, false) if rest.trim_end().is_empty() => {
                Some(TableText::Drop { temporary, name })
            }
            _ => None,
        }
    }
}

/// The word that a text begins with, behind spaces, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(' ');
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = text
        .find(|letter| !is_of_word(letter))
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::TableText;

    #[test]
    fn statements_are_cut_behind_the_name() {
        let create = |name, rest| Some(TableText::Create { name, rest });
        let drop = |temporary, name| Some(TableText::Drop { temporary, name });
        for (text, expected) in [
            ("CREATE TEMPORARY TABLE t (a INT)", create("t", " (a INT)")),
            ("create  temporary table t1(a INT)", create("t1", "(a INT)")),
            ("DROP TABLE t", drop(false, "t")),
            ("DROP TEMPORARY TABLE t_2 ", drop(true, "t_2")),
            ("CREATE TABLE t (a INT)", None),
            ("CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT)", None),
            ("CREATE TEMPORARY TABLE t LIKE s", None),
            ("CREATE TEMPORARY TABLE d.t (a INT)", None),
            ("CREATE TEMPORARY TABLE d .t (a INT)", None),
            ("CREATE TEMPORARY TABLE `t` (a INT)", None),
            ("CREATE TEMPORARY TABLE 1t (a INT)", None),
            ("CREATE TEMPORARY TABLE select (a INT)", None),
            ("CREATE TEMPORARY TABLE t", None),
            ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", None),
            ("DROP TABLE t, s", None),
            ("DROP TABLE IF EXISTS t", None),
            ("DROP TABLE d.t", None),
            ("DROP TABLE t RESTRICT", None),
            ("DROP VIEW t", None),
            ("SELECT 1", None),
            ("", None),
        ] {
            assert_eq!(TableText::read(text), expected, "{text}");
        }
    }
}
