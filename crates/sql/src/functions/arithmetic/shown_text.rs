//! The text of an expression in an error, and the databases in it.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// The text of an expression, which may be a part of that of a longer one.
#[derive(Clone, Default)]
pub(super) struct ShownText {
    whole: Arc<str>,
    part: Range<usize>,
}

impl ShownText {
    /// A part of a text.
    pub(super) fn part(whole: &Arc<str>, part: Range<usize>) -> ShownText {
        let whole = Arc::clone(whole);
        ShownText { whole, part }
    }

    pub(super) fn as_str(&self) -> &str {
        self.whole.get(self.part.clone()).unwrap_or_default()
    }
}

impl From<String> for ShownText {
    fn from(text: String) -> Self {
        ShownText {
            part: 0..text.len(),
            whole: text.into(),
        }
    }
}

impl fmt::Display for ShownText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ShownText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl PartialEq for ShownText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ShownText {}

impl Hash for ShownText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// The text of an expression with the databases of its tables; `None` if it names none of these
/// tables without its database.
pub(super) fn text_in_databases(text: &str, databases: &HashMap<String, String>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut is_changed = false;
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let Some(length) = rest[start + 1..].find('`') else {
            break;
        };
        let (before, end) = (&rest[..start], start + length + 2);
        let is_table = rest[end..].starts_with(".`") && !before.ends_with('.');
        let database = databases.get(&rest[start + 1..end - 1]);
        out.push_str(before);
        if let Some(database) = database.filter(|_| is_table) {
            out.push_str(&format!("`{database}`."));
            is_changed = true;
        }
        out.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::text_in_databases;

    #[test]
    fn tables_are_named_with_their_databases() {
        let databases = HashMap::from([("t".to_owned(), "test".to_owned())]);
        for (text, named) in [
            ("(`t`.`a` + 1)", Some("(`test`.`t`.`a` + 1)")),
            (
                "(-(`t`.`a`) - `u`.`t`)",
                Some("(-(`test`.`t`.`a`) - `u`.`t`)"),
            ),
            ("(`other`.`t`.`a` + 1)", None),
            ("(`t` + 1)", None),
            ("('`' + 1)", None),
            ("", None),
        ] {
            assert_eq!(
                text_in_databases(text, &databases).as_deref(),
                named,
                "{text}"
            );
        }
    }
}
