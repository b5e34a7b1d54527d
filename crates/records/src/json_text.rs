//! Spells a JSON document as MySQL does: `{"a": [1, "x"]}`.

/// Appends a document that a [`JsonReader`](crate::JsonReader) has found to be well-formed: one
/// space behind commas and colons, none elsewhere, and characters as they are where they may be.
pub fn write_json(document: &str, out: &mut String) {
    let mut characters = document.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => {}
            ',' | ':' => {
                out.push(character);
                out.push(' ');
            }
            '"' => {
                out.push('"');
                write_string(&mut characters, out);
                out.push('"');
            }
            other => out.push(other),
        }
    }
}

/// Appends the rest of a string, without its closing quote.
fn write_string(characters: &mut std::str::Chars<'_>, out: &mut String) {
    while let Some(character) = characters.next() {
        match character {
            '"' => return,
            '\\' => match characters.next() {
                Some('u') => write_character(code_point(characters), out),
                Some('/') => out.push('/'),
                Some(other) => out.extend(['\\', other]),
                None => return,
            },
            other => write_character(other, out),
        }
    }
}

fn write_character(character: char, out: &mut String) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        control if control < ' ' => {
            let code = u32::from(control);
            out.push_str(&format!("\\u{code:04x}"));
        }
        other => out.push(other),
    }
}

/// The character of an escape, or of two that are a pair.
fn code_point(characters: &mut std::str::Chars<'_>) -> char {
    let unit = |characters: &mut std::str::Chars<'_>| {
        let digits: String = characters.by_ref().take(4).collect();
        u16::from_str_radix(&digits, 16).unwrap_or_default()
    };
    let high = unit(characters);
    let units = match high {
        0xD800..0xDC00 => {
            // The backslash and the letter of the second.
            characters.nth(1);
            vec![high, unit(characters)]
        }
        _ => vec![high],
    };
    let mut decoded = char::decode_utf16(units);
    let character = decoded.next().and_then(Result::ok);
    character.unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::write_json;

    #[test]
    fn documents_are_spelled_as_mysql_does() {
        let check = |document: &str, expect: &str| {
            let mut out = String::new();
            write_json(document, &mut out);
            assert_eq!(out, expect);
        };
        check("{\"a\":1,\n \"b\" : [1,2]}", "{\"a\": 1, \"b\": [1, 2]}");
        check(
            r#"["a,b:c","\u00e4\ud83d\ude00"]"#,
            "[\"a,b:c\", \"\u{e4}\u{1f600}\"]",
        );
        check(
            r#"["\/\"\\\n\u000a\u0001\u0022"]"#,
            r#"["/\"\\\n\n\u0001\""]"#,
        );
    }
}
