//! Counts lines.

use memchr::memchr_iter;

/// How many lines end in some bytes: with LF, CRLF or CR. A CR that is the last byte ends one.
pub(crate) fn line_ends(bytes: &[u8]) -> u64 {
    let feeds = memchr_iter(b'\n', bytes).count();
    let is_alone = |at: &usize| ends_line(bytes, *at);
    let returns = memchr_iter(b'\r', bytes).filter(is_alone).count();
    feeds.saturating_add(returns) as u64
}

/// Whether the line feed or carriage return that stands there is the last byte of its line.
pub(crate) fn ends_line(bytes: &[u8], at: usize) -> bool {
    let is_return = bytes.get(at) == Some(&b'\r');
    !(is_return && bytes.get(at.saturating_add(1)) == Some(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::line_ends;

    #[test]
    fn lines_end_in_three_ways() {
        for (text, expect) in [
            ("", 0),
            ("a", 0),
            ("a\nb\n", 2),
            ("a\r\nb\r\n", 2),
            ("a\rb\r", 2),
            ("\r\r\n\n\r", 4),
        ] {
            assert_eq!(line_ends(text.as_bytes()), expect, "{text:?}");
        }
    }
}
