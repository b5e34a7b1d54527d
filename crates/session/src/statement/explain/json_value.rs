//! A JSON document, written as MySQL writes those of EXPLAIN.
//!
//! Members keep the order in which they were added: readers expect `select_id` first.

use std::fmt::{self, Write};

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Text(String),
    Number(u64),
    Bool(bool),
    Array(Vec<Json>),
    Object(Object),
}

/// The members of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object(Vec<(&'static str, Json)>);

impl Object {
    /// Adds a member.
    pub(super) fn add(&mut self, name: &'static str, value: impl Into<Json>) {
        self.0.push((name, value.into()));
    }

    /// Adds an array of texts, if there are some.
    pub(super) fn add_texts(&mut self, name: &'static str, texts: &[String]) {
        if !texts.is_empty() {
            let texts = texts.iter().cloned().map(Json::Text);
            self.add(name, Json::Array(texts.collect()));
        }
    }

    /// Adds the members of another object.
    pub(super) fn extend(&mut self, other: Object) {
        self.0.extend(other.0);
    }

    /// Takes a member out.
    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(member, _)| *member != name);
    }

    /// An object with one member.
    pub(super) fn of(name: &'static str, value: impl Into<Json>) -> Object {
        Object(vec![(name, value.into())])
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<usize> for Json {
    fn from(number: usize) -> Json {
        Json::Number(number as u64)
    }
}

impl From<Vec<Json>> for Json {
    fn from(values: Vec<Json>) -> Json {
        Json::Array(values)
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Json {
        Json::Object(object)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Json {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Json::Text(text) => write_text(f, text),
            Json::Number(number) => write!(f, "{number}"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Array(values) if values.is_empty() => f.write_str("[]"),
            Json::Array(values) => {
                f.write_char('[')?;
                for (index, value) in values.iter().enumerate() {
                    begin_line(f, index, depth + 1)?;
                    value.write(f, depth + 1)?;
                }
                end_lines(f, depth)?;
                f.write_char(']')
            }
            Json::Object(Object(members)) if members.is_empty() => f.write_str("{}"),
            Json::Object(Object(members)) => {
                f.write_char('{')?;
                for (index, (name, value)) in members.iter().enumerate() {
                    begin_line(f, index, depth + 1)?;
                    write!(f, "\"{name}\": ")?;
                    value.write(f, depth + 1)?;
                }
                end_lines(f, depth)?;
                f.write_char('}')
            }
        }
    }
}

/// A new line for the next of several values.
fn begin_line(f: &mut fmt::Formatter<'_>, index: usize, depth: usize) -> fmt::Result {
    if index > 0 {
        f.write_char(',')?;
    }
    end_lines(f, depth)
}

fn end_lines(f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    write!(f, "\n{:width$}", "", width = 2 * depth)
}

/// Writes a string with the escapes of MySQL's EXPLAIN, which has no `\b` and `\f` as the documents
/// of `mayfly_types::spelling::write_quoted` have.
///
/// **Source**: `Buffer::append_escaped` of MySQL, `opt_trace.cc`.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            control if control < ' ' => write!(f, "\\u{:04x}", control as u32)?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_look_as_those_of_mysql() {
        let mut table = Object::default();
        table.add("table_name", "t");
        table.add_texts("used_key_parts", &["a".to_owned(), "b".to_owned()]);
        table.add_texts("ref", &[]);
        table.add("using_index", true);
        table.add("rows_examined_per_scan", 3_usize);
        let document = Json::from(Object::of("query_block", Object::of("table", table)));
        let expected = [
            "{",
            "  \"query_block\": {",
            "    \"table\": {",
            "      \"table_name\": \"t\",",
            "      \"used_key_parts\": [",
            "        \"a\",",
            "        \"b\"",
            "      ],",
            "      \"using_index\": true,",
            "      \"rows_examined_per_scan\": 3",
            "    }",
            "  }",
            "}",
        ];
        assert_eq!(document.to_string(), expected.join("\n"));
        assert_eq!(Json::from(Object::default()).to_string(), "{}");
        assert_eq!(Json::from(Vec::<Json>::new()).to_string(), "[]");
    }

    #[test]
    fn texts_are_escaped() {
        let text = Json::from("a\"b\\c\nd\te\u{1}\u{e4}");
        assert_eq!(text.to_string(), "\"a\\\"b\\\\c\\nd\\te\\u0001\u{e4}\"");
    }
}
