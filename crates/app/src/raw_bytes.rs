//! Bytes of a script that are no UTF-8, in texts: literals of dumps hold such bytes.
//!
//! Each is a character of its own at the end of the last plane for private use until its statement
//! is complete. Such a character of the script is kept byte by byte too, so that a statement has
//! the bytes of the script again, whatever they are. (Python calls this `surrogateescape`.)

use std::borrow::Cow;

use mayfly_session::client_text;
use mayfly_types::{CharacterSet, MySqlError};

/// The character of byte 0.
const FIRST: u32 = 0x0010_FF00;
/// The first byte of all such characters, and of few others.
const LEAD: u8 = 0xF4;

/// A text for a line.
pub fn text_of(line: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(line)
        && !line.contains(&LEAD)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        for character in chunk.valid().chars() {
            match byte_of(character) {
                None => text.push(character),
                Some(_) => {
                    let mut bytes = [0; 4];
                    let bytes = character.encode_utf8(&mut bytes).bytes();
                    text.extend(bytes.map(character_of));
                }
            }
        }
        text.extend(chunk.invalid().iter().copied().map(character_of));
    }
    Cow::Owned(text)
}

/// The bytes that a text was made of; `None` if they are its own.
pub fn bytes_of(text: &str) -> Option<Vec<u8>> {
    if !text.as_bytes().contains(&LEAD) || !text.contains(|it| byte_of(it).is_some()) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some(bytes)
}

/// A statement, read as the server reads what clients send.
///
/// # Errors
/// 1300 for bytes outside of literals and comments that are no characters of the set.
pub fn statement_of(sql: &str, set: CharacterSet) -> Result<Cow<'_, str>, MySqlError> {
    match bytes_of(sql) {
        None => Ok(Cow::Borrowed(sql)),
        Some(bytes) => client_text(&bytes, set).map(|text| Cow::Owned(text.into_owned())),
    }
}

fn character_of(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn byte_of(character: char) -> Option<u8> {
    u8::try_from(u32::from(character).checked_sub(FIRST)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_bytes() {
        let stand_in = character_of(0xFF).to_string();
        let lines: [&[u8]; 6] = [
            b"select 1",
            b"select '\xff'",
            "\u{e4} \u{1F600}".as_bytes(),
            b"\xc3\xa4\xc3' \xf4\x8f\xbf",
            stand_in.as_bytes(),
            b"\xff\xf4\x8f\xbc\x80",
        ];
        for line in lines {
            let text = text_of(line);
            let bytes = bytes_of(&text).unwrap_or_else(|| text.as_bytes().to_vec());
            assert_eq!(bytes, line, "{text:?}");
        }
        assert!(matches!(text_of(b"select 1"), Cow::Borrowed("select 1")));
        assert_eq!(bytes_of("\u{e4} \u{1F600}"), None);
    }
}
