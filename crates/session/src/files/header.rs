//! The first line of a text file, and whether the files of a pattern agree in it.
//!
//! Never looks at a value: types are inferred elsewhere.

use std::collections::HashSet;

use mayfly_types::{ErrorCode, MySqlError};

/// What the first line of a text file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Header {
    /// It names the columns.
    Names(Vec<String>),
    /// It is a row; the number of its fields.
    Fields(usize),
}

impl Header {
    /// Reads the first line in the beginning of a file.
    ///
    /// # Errors
    /// 1060 when it names a column twice.
    pub(super) fn read(head: &str, delimiter: char) -> Result<Header, MySqlError> {
        let fields = first_record(head.trim_start_matches('\u{feff}'), delimiter);
        if fields.is_empty() || !fields.iter().all(|field| is_name(field)) {
            return Ok(Header::Fields(fields.len()));
        }
        let mut seen = HashSet::new();
        match fields.iter().find(|name| !seen.insert(name.to_lowercase())) {
            Some(name) => Err(MySqlError::new(ErrorCode::DuplicateColumn, &[name])),
            None => Ok(Header::Names(fields)),
        }
    }

    pub(super) fn is_named(&self) -> bool {
        matches!(self, Header::Names(_))
    }

    /// For each column of this file, its place in `other`; `None` when they are not the same
    /// columns.
    pub(super) fn places_in(&self, other: &Header) -> Option<Vec<usize>> {
        match (self, other) {
            (Header::Fields(width), Header::Fields(other)) if width == other => {
                Some((0..*width).collect())
            }
            (Header::Names(names), Header::Names(others)) if names.len() == others.len() => {
                let others: Vec<String> = others.iter().map(|name| name.to_lowercase()).collect();
                names
                    .iter()
                    .map(|name| {
                        let name = name.to_lowercase();
                        others.iter().position(|other| *other == name)
                    })
                    .collect()
            }
            _ => None,
        }
    }

    /// For people: `columns a, b`.
    pub(super) fn describe(&self) -> String {
        match self {
            Header::Names(names) => format!("columns {}", names.join(", ")),
            Header::Fields(1) => "1 column without a name".to_owned(),
            Header::Fields(width) => format!("{width} columns without names"),
        }
    }
}

/// Neither empty nor a number nor a date.
fn is_name(field: &str) -> bool {
    let looks_like_value = field.parse::<f64>().is_ok()
        || field.starts_with(|c: char| c.is_ascii_digit())
            && field
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b"-:/ .T".contains(&byte));
    !field.is_empty() && !looks_like_value
}

/// The fields of the first line, without quotes and the white space around them.
fn first_record(head: &str, delimiter: char) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = head.chars().peekable();
    let mut any = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted || field.trim().is_empty() => quoted = !quoted,
            '\n' if !quoted => break,
            c if c == delimiter && !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
        any = true;
    }
    if any {
        fields.push(field);
    }
    for field in &mut fields {
        *field = field.trim().to_owned();
    }
    fields
}
