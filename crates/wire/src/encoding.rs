//! Texts in the client's `character_set_results`.

use std::borrow::Cow;

/// How texts, names of columns and errors are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextEncoding {
    /// As they are: utf8mb4, utf8mb3, binary, or no conversion at all.
    #[default]
    Utf8,
    /// MySQL's latin1, which is Windows' code page 1252. What it does not have becomes `?`.
    Latin1,
}

/// The characters from 0x80 to 0x9F; those that the code page leaves out stand for themselves.
const HIGH_CONTROLS: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2C6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

impl TextEncoding {
    /// A text that is UTF-8 in this encoding.
    pub(crate) fn encode(self, text: &[u8]) -> Cow<'_, [u8]> {
        if self == TextEncoding::Utf8 || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let text = String::from_utf8_lossy(text);
        Cow::Owned(text.chars().map(latin1).collect())
    }
}

fn latin1(character: char) -> u8 {
    match u8::try_from(character) {
        Ok(byte) if !(0x80..0xA0).contains(&byte) => byte,
        _ => (0x80..=0x9F)
            .zip(HIGH_CONTROLS)
            .find_map(|(byte, other)| (other == character).then_some(byte))
            .unwrap_or(b'?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin1_is_code_page_1252() {
        for (text, expected) in [
            ("abc", b"abc".as_slice()),
            ("gr\u{FC}n", b"gr\xFCn"),
            ("\u{20AC} 5", b"\x80 5"),
            ("\u{178}\u{81}", b"\x9F\x81"),
            ("\u{1F41D}\u{80}", b"??"),
        ] {
            assert_eq!(&*TextEncoding::Latin1.encode(text.as_bytes()), expected);
            assert_eq!(
                &*TextEncoding::Utf8.encode(text.as_bytes()),
                text.as_bytes()
            );
        }
    }
}
