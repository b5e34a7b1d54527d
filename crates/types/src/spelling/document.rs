//! Texts inside a document of JSON.

use super::Out;

/// Appends a string of JSON with the escapes that MySQL writes.
pub fn write_quoted(text: &str, out: &mut impl Out) {
    out.push(b'"');
    let mut rest = text;
    let is_escaped = |letter: char| matches!(letter, '"' | '\\') || letter < ' ';
    while let Some((before, letter, behind)) = cut(rest, is_escaped) {
        out.push_str(before);
        match letter {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            other => out.push_str(&format!("\\u{other:04x}")),
        }
        rest = behind;
    }
    out.push_str(rest);
    out.push(b'"');
}

/// What stands before the first ASCII letter of a kind, the letter, and what stands behind it.
fn cut(text: &str, is_kind: impl Fn(char) -> bool) -> Option<(&str, u8, &str)> {
    let at = text.find(is_kind)?;
    let (before, from) = text.split_at(at);
    let letter = *from.as_bytes().first()?;
    Some((before, letter, from.get(1..)?))
}
