//! The first line of a CSV file, and whether the files of a pattern agree in it.
//!
//! It names the columns if no field of it is empty, a number or a date. Where some fields are, as
//! in a file that was written with a nameless index or with a column a year, the rows below decide:
//! it is a header if a name stands above values that are no texts.

use std::collections::{HashMap, HashSet};

use mayfly_records::{Error, NAME_CHARACTERS_MAX};
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use super::wrong;

/// Bytes of a field that are looked at: more than the longest name has.
const SHOWN_BYTES: usize = 4 * (NAME_CHARACTERS_MAX + 1);
/// Bytes that an error shows around one that is not UTF-8.
const WRONG_BYTES: usize = 16;
/// Names that an error shows.
const SHOWN_NAMES: usize = 16;

/// What the first line of a text file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Header {
    /// It names the columns.
    Names(Vec<String>),
    /// It is a row; the number of its fields.
    Fields(usize),
}

/// What the first line of a text file may say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FirstLine {
    fields: Vec<String>,
    /// The bytes around the first one that is not UTF-8.
    wrong: Option<Vec<u8>>,
    /// Its number in the file.
    line: u64,
}

impl FirstLine {
    /// Keeps no more of a field than tells whether it is a name, and one that is too long.
    pub(super) fn new(fields: Vec<Vec<u8>>, line: u64) -> FirstLine {
        let wrong = fields.iter().find_map(|field| {
            let error = std::str::from_utf8(field).err()?;
            let from = error.valid_up_to().saturating_sub(WRONG_BYTES / 2);
            Some(field.iter().skip(from).take(WRONG_BYTES).copied().collect())
        });
        let text = |field: Vec<u8>| {
            let field = field.trim_ascii();
            let field = field.get(..SHOWN_BYTES).unwrap_or(field);
            let text = String::from_utf8_lossy(field);
            let characters = text.trim().chars();
            characters
                .take(NAME_CHARACTERS_MAX.saturating_add(1))
                .collect()
        };
        FirstLine {
            fields: fields.into_iter().map(text).collect(),
            wrong,
            line,
        }
    }

    pub(super) fn width(&self) -> usize {
        self.fields.len()
    }

    /// Whether it is a header: told by the line alone, unless only some of its fields are names.
    pub(super) fn is_header(&self) -> Option<bool> {
        match self.fields.iter().filter(|field| is_name(field)).count() {
            0 => Some(false),
            names if names == self.fields.len() => Some(true),
            _ => None,
        }
    }

    /// Whether a line of which only some fields are names is a header of columns of these types.
    pub(super) fn is_header_above(&self, is_text: impl Fn(usize) -> bool) -> bool {
        let mut fields = self.fields.iter().enumerate();
        fields.any(|(column, field)| is_name(field) && !is_text(column))
    }

    /// The header, and a warning where the line alone does not tell what it is.
    ///
    /// # Errors
    /// 1300 when a name is not UTF-8, 1060 when it names a column twice, 1059 when a name is too
    /// long.
    pub(super) fn into_header(
        self,
        is_header: bool,
        path: &str,
    ) -> Result<(Header, Option<Warning>), MySqlError> {
        let (width, line) = (self.fields.len(), self.line);
        let missing = self.fields.iter().filter(|field| field.is_empty()).count();
        let is_unclear = self.is_header().is_none();
        let mut fields = self.fields.iter();
        let value = fields.find(|field| !field.is_empty() && !is_name(field));
        if !is_header {
            // That a line with values is a row needs no word.
            let warning = (is_unclear && value.is_none()).then(|| {
                let text = format!(
                    "Line {line} of file '{path}' lacks {missing} names of {width}: it is read as a row, \
                     and the columns are called column_1, column_2, ..."
                );
                warning_of(text)
            });
            return Ok((Header::Fields(width), warning));
        }
        if let Some(bytes) = self.wrong {
            return Err(wrong::of_record(Error::NotUtf8 { line, bytes }, path));
        }
        let value_warning = value.filter(|_| is_unclear).map(|value| {
            let text = format!(
                "Line {line} of file '{path}' is read as the names of its columns, though '{value}' in \
                 it may be a value: other names stand above numbers or days"
            );
            warning_of(text)
        });
        let is_long = |name: &&String| name.chars().nth(NAME_CHARACTERS_MAX).is_some();
        if let Some(name) = self.fields.iter().find(is_long) {
            return Err(wrong::name_too_long(name, line, path));
        }
        let mut seen = HashSet::new();
        let names = self.fields.into_iter().enumerate();
        let names = names.map(|(column, name)| match name.is_empty() {
            true => default_name(column),
            false => name,
        });
        let names: Vec<String> = names.collect();
        if let Some(name) = names.iter().find(|name| !seen.insert(name.to_lowercase())) {
            let mut error = MySqlError::new(ErrorCode::DuplicateColumn, &[name]);
            error.message = format!("{} in line {line} of file '{path}'", error.message);
            return Err(error);
        }
        let warning = (missing > 0).then(|| {
            let text = format!(
                "Line {line} of file '{path}' lacks {missing} names of {width}: these columns are called \
                 by their number, column_1 for the first"
            );
            warning_of(text)
        });
        Ok((Header::Names(names), value_warning.or(warning)))
    }
}

impl Header {
    /// The names of the columns.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Header::Names(names) => names.clone(),
            Header::Fields(width) => (0..*width).map(default_name).collect(),
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
                let others = others.iter().enumerate();
                let others = others.map(|(place, name)| (name.to_lowercase(), place));
                let others: HashMap<String, usize> = others.collect();
                let places = names.iter().map(|name| others.get(&name.to_lowercase()));
                places.map(|place| place.copied()).collect()
            }
            _ => None,
        }
    }

    /// For people: `columns a, b`.
    pub(super) fn describe(&self) -> String {
        match self {
            Header::Names(names) => match names.get(..SHOWN_NAMES) {
                Some(first) if names.len() > SHOWN_NAMES => {
                    format!("columns {}, ... ({} in all)", first.join(", "), names.len())
                }
                _ => format!("columns {}", names.join(", ")),
            },
            Header::Fields(1) => "1 column without a name".to_owned(),
            Header::Fields(width) => format!("{width} columns without names"),
        }
    }
}

fn default_name(column: usize) -> String {
    format!("column_{}", column.saturating_add(1))
}

fn warning_of(text: String) -> Warning {
    Warning {
        level: Level::Warning,
        error: MySqlError::with_message(ErrorCode::WrongColumnName, text),
    }
}

/// Neither empty nor a number nor a date.
fn is_name(field: &str) -> bool {
    // The words for what is no number are texts as others are.
    let is_number = field.bytes().any(|byte| byte.is_ascii_digit()) && field.parse::<f64>().is_ok();
    let looks_like_value = is_number
        || field.starts_with(|c: char| c.is_ascii_digit())
            && field
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b"-:/ .T".contains(&byte));
    !field.is_empty() && !looks_like_value
}
