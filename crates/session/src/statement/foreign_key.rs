//! FOREIGN KEY, as MySQL's engines without it take it: its syntax is checked, the key over its
//! columns is made, and nothing else is kept.
//!
//! It is not shown by SHOW CREATE TABLE either, as with MyISAM: who reads it there would rely on
//! it. A dump that loads its tables in any order needs no more than that it is accepted.

use mayfly_sql::statement::{ColumnDefinition, KeyColumn, KeyDefinition};
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

/// The keys of a table without those of foreign keys that another key makes needless, since it
/// begins with the same columns. Of two foreign keys with the same columns the later one stays.
pub(crate) fn settled(mut keys: Vec<KeyDefinition>) -> Vec<KeyDefinition> {
    let mut place = 0;
    while place < keys.len() {
        let key = &keys[place];
        let mut others = keys.iter().enumerate().filter(|(other, _)| *other != place);
        let is_needless = key.for_foreign_key
            && others.any(|(at, other)| {
                let is_first =
                    !other.for_foreign_key || at > place || other.parts.len() > key.parts.len();
                is_first && begins_with(&other.parts, &key.parts)
            });
        match is_needless {
            true => {
                keys.remove(place);
            }
            false => place += 1,
        }
    }
    keys
}

/// Whether a key has the columns of another before all others.
fn begins_with(key: &[KeyColumn], columns: &[KeyColumn]) -> bool {
    key.len() >= columns.len() && { key.iter().zip(columns) }.all(|(one, other)| {
        one.column.to_lowercase() == other.column.to_lowercase() && one.length == other.length
    })
}

/// What is to be said of the foreign keys of a statement.
pub(crate) fn warnings<'a>(
    keys: impl Iterator<Item = &'a KeyDefinition>,
    columns: impl Iterator<Item = &'a ColumnDefinition>,
) -> Vec<Warning> {
    let of_keys = keys.filter(|key| key.for_foreign_key).count();
    let of_columns = columns.filter(|column| column.references).count();
    let what = "FOREIGN KEY (it is read, and neither kept nor checked)";
    let warning = Warning {
        level: Level::Warning,
        error: MySqlError::new(ErrorCode::NotSupportedYet, &[&what]),
    };
    vec![warning; of_keys + of_columns]
}

#[cfg(test)]
mod tests {
    use mayfly_table::KeyKind;

    use super::*;

    fn key(name: &str, columns: &[&str], for_foreign_key: bool) -> KeyDefinition {
        let part = |column: &&str| KeyColumn {
            column: (*column).to_owned(),
            length: None,
            descending: false,
        };
        KeyDefinition {
            name: Some(name.to_owned()),
            kind: KeyKind::Plain,
            parts: columns.iter().map(part).collect(),
            comment: None,
            using: None,
            if_not_exists: false,
            for_foreign_key,
        }
    }

    #[test]
    fn a_key_that_begins_with_its_columns_takes_the_place_of_that_of_a_foreign_key() {
        let check = |keys: Vec<KeyDefinition>, expect: &[&str]| {
            let names: Vec<_> = settled(keys)
                .into_iter()
                .filter_map(|key| key.name)
                .collect();
            assert_eq!(names, expect);
        };
        check(vec![key("f", &["a"], true)], &["f"]);
        check(
            vec![key("f", &["a"], true), key("k", &["A", "b"], false)],
            &["k"],
        );
        check(
            vec![key("k", &["b", "a"], false), key("f", &["a"], true)],
            &["k", "f"],
        );
        check(
            vec![key("f", &["a", "b"], true), key("k", &["a"], false)],
            &["f", "k"],
        );
        check(vec![key("f", &["a"], true), key("g", &["a"], true)], &["g"]);
        check(
            vec![key("f", &["a", "b"], true), key("g", &["a"], true)],
            &["f"],
        );
        check(
            vec![key("f", &["a"], true), key("g", &["a", "b"], true)],
            &["g"],
        );
    }
}
