//! Texts cut by characters.

pub(super) fn count(value: usize) -> i64 {
    i64::try_from(value).expect("a text has fewer than 2^63 bytes")
}

/// The first characters of a text.
pub(super) fn head(text: &str, characters: usize) -> &str {
    if characters >= text.len() {
        return text;
    }
    let bytes = text.as_bytes();
    if bytes[..characters].is_ascii() {
        return text.get(..characters).unwrap_or(text);
    }
    text.char_indices()
        .nth(characters)
        .map_or(text, |(at, _)| &text[..at])
}

/// The last characters of a text.
pub(super) fn tail(text: &str, characters: usize) -> &str {
    if characters >= text.len() {
        return text;
    }
    let start = match characters {
        0 => text.len(),
        _ => text
            .char_indices()
            .nth_back(characters - 1)
            .map_or(0, |(at, _)| at),
    };
    &text[start..]
}

/// A count of characters: nothing below zero.
pub(super) fn characters(value: i64) -> usize {
    usize::try_from(value.max(0)).unwrap_or(usize::MAX)
}
