//! What the planner calls tables that go by one name.
//!
//! MySQL tells tables of one name apart by their databases, and takes a name without one for the
//! table that has the column. The planner knows a table by one name only. So each table that shares
//! its name with another one of its FROM, or of a select around that, gets an alias of its own: the
//! name that it goes by and a number between two marks, which nobody writes.
//!
//! ```text
//!   FROM d.t, e.u AS t    FROM d.t AS `t<0>`, e.u AS `t<1>`
//!   d.t.a                 `t<0>`.a
//! ```
//!
//! Whatever a user sees is without the number: origins of columns, EXPLAIN, errors. Who gets such a
//! name, and which of them a name means, is settled in `rewrite::qualifiers`.

use datafusion::sql::sqlparser::ast::{Ident, TableFactor};
use mayfly_types::MySqlError;

use crate::from_list::plain_alias;

/// Stands before and behind the number. No character: names that hold it are refused when they are
/// read.
pub(crate) const MARK: char = '\u{10FFFF}';

/// The n-th inner name of a statement, for a table that goes by a name.
pub(crate) fn inner(name: &str, number: usize) -> String {
    format!("{name}{MARK}{number}{MARK}")
}

/// Whether a name is one of these.
pub(crate) fn is_inner(name: &str) -> bool {
    shown(name).len() < name.len()
}

/// The name by which a table goes.
pub fn shown(name: &str) -> &str {
    let numbered = name.strip_suffix(MARK);
    let numbered = numbered.and_then(|numbered| numbered.rsplit_once(MARK));
    match numbered {
        Some((shown, number)) if is_number(number) => shown,
        _ => name,
    }
}

/// A text with all of its tables by the names that they go by.
pub fn shown_in(text: String) -> String {
    if !text.contains(MARK) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once(MARK) {
        shown.push_str(before);
        rest = match behind.split_once(MARK) {
            Some((number, behind)) if is_number(number) => behind,
            // It belongs to a value.
            _ => {
                shown.push(MARK);
                behind
            }
        };
    }
    shown.push_str(rest);
    shown
}

/// The same for an error.
#[must_use]
pub fn shown_in_error(error: MySqlError) -> MySqlError {
    let message = shown_in(error.message);
    MySqlError { message, ..error }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Gives a table another alias, under which its columns are called what they were called.
pub(crate) fn rename(factor: &mut TableFactor, name: &str) {
    let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = factor else {
        return;
    };
    let alias = alias.get_or_insert_with(|| plain_alias(name));
    alias.name = Ident::with_quote('`', name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_shown() {
        let name = inner("t", 12);
        assert_ne!(name, inner("t", 1));
        assert!(is_inner(&name));
        assert_eq!(shown(&name), "t");
        for name in ["t", "", "t|", "|a|", "t||"] {
            let name = name.replace('|', &MARK.to_string());
            assert!(!is_inner(&name), "{name:?}");
            assert_eq!(shown(&name), name);
        }
        let text = format!("'{name}.a' and '{}.b'", inner("u", 0));
        assert_eq!(shown_in(text), "'t.a' and 'u.b'");
        assert_eq!(shown_in("as it is".to_owned()), "as it is");
        for (text, expected) in [
            ("|", "|"),
            ("a|b|c", "a|b|c"),
            ("||t|3|", "||t"),
            ("a|5|6|b", "a6|b"),
            ("x|t|12|.a|", "x|t.a|"),
        ] {
            let [text, expected] =
                [text, expected].map(|text| text.replace('|', &MARK.to_string()));
            assert_eq!(shown_in(text), expected);
        }
    }
}
