//! The character sets that a client may speak, and how they become the engine's UTF-8.
//!
//! Text is UTF-8 everywhere but between a client and a server, and in files that are loaded.
//!
//! **Source**: `strings/ctype-latin1.cc`, `strings/ctype-utf8.cc` of MySQL; compared with what
//! MariaDB sends.

use std::borrow::Cow;

use crate::{Collation, ErrorCode, MySqlError};

/// A character set that a client may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CharacterSet {
    /// UTF-8.
    #[default]
    Utf8mb4,
    /// UTF-8 without characters of four bytes.
    Utf8mb3,
    /// Windows' code page 1252, whose five empty places stand for the controls of that number.
    Latin1,
    /// The first 128 characters.
    Ascii,
    /// Bytes. As a client's text they are UTF-8.
    Binary,
}

/// Numbers and names of the collations that clients name most; numbers of the others of a set
/// count as its first, and their names are accepted too.
#[rustfmt::skip]
const COLLATIONS: [(u16, &str); 27] = [
    (255, "utf8mb4_0900_ai_ci"), (309, "utf8mb4_0900_bin"), (45, "utf8mb4_general_ci"),
    (46, "utf8mb4_bin"), (224, "utf8mb4_unicode_ci"), (246, "utf8mb4_unicode_520_ci"),
    (278, "utf8mb4_0900_as_cs"), (305, "utf8mb4_0900_as_ci"),
    (33, "utf8mb3_general_ci"), (83, "utf8mb3_bin"), (76, "utf8mb3_tolower_ci"),
    (192, "utf8mb3_unicode_ci"), (214, "utf8mb3_unicode_520_ci"),
    (223, "utf8mb3_general_mysql500_ci"),
    (8, "latin1_swedish_ci"), (5, "latin1_german1_ci"), (15, "latin1_danish_ci"),
    (31, "latin1_german2_ci"), (47, "latin1_bin"), (48, "latin1_general_ci"),
    (49, "latin1_general_cs"), (94, "latin1_spanish_ci"),
    (11, "ascii_general_ci"), (65, "ascii_bin"),
    (63, "binary"),
    (33, "utf8_general_ci"), (83, "utf8_bin"),
];

/// The sets of collations that are not served: a client that names one would read other characters
/// than it stored.
#[rustfmt::skip]
const OTHERS: [(&str, &[u16]); 31] = [
    ("big5", &[1, 84]), ("latin2", &[2, 9, 21, 27, 77]), ("dec8", &[3, 69]), ("cp850", &[4, 80]),
    ("hp8", &[6, 72]), ("koi8r", &[7, 74]), ("swe7", &[10, 82]), ("ujis", &[12, 91]),
    ("sjis", &[13, 88]), ("cp1251", &[14, 23, 50, 51, 52]), ("hebrew", &[16, 71]),
    ("tis620", &[18, 89]), ("euckr", &[19, 85]), ("latin7", &[20, 41, 42, 79]),
    ("koi8u", &[22, 75]), ("gb2312", &[24, 86]), ("greek", &[25, 70]),
    ("cp1250", &[26, 34, 44, 66, 99]), ("gbk", &[28, 87]), ("cp1257", &[29, 58, 59]),
    ("latin5", &[30, 78]), ("armscii8", &[32, 64]), ("cp866", &[36, 68]), ("keybcs2", &[37, 73]),
    ("macce", &[38, 43]), ("macroman", &[39, 53]), ("cp852", &[40, 81]), ("cp1256", &[57, 67]),
    ("geostd8", &[92, 93]), ("cp932", &[95, 96]), ("eucjpms", &[97, 98]),
];

/// Sets whose statements no server could read: their letters are not those of ASCII.
const WIDE: [&str; 4] = ["ucs2", "utf16", "utf16le", "utf32"];

/// The words of which names of collations are made, behind that of their set. MySQL has those of
/// languages in short, MariaDB `nopad` and `uca1400`.
const COLLATION_WORDS: &str = "0900 520 ai as bg bin bs ci croatian cs cyrl czech da danish de eo \
    es esperanto estonian et general german1 german2 gl hr hu hungarian icelandic is ja ks la latn \
    latvian lithuanian lt lv mn myanmar mysql500 mysql561 nb nn nopad pb persian pl polish ro roman \
    romanian ru sinhala sk sl slovak slovenian spanish spanish2 sr sv swedish thai tolower tr trad \
    turkish uca1400 unicode vi vietnamese w2 zh";

/// Why a collation is not one that texts can be compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCollation {
    /// No server has it.
    Unknown,
    /// It is one of a set that is not served.
    OfSet(&'static str),
    /// It takes some letters for others.
    NotByCodePoints,
}

impl NoCollation {
    /// The error for a collation of that name, where it stands at a text.
    pub fn error(self, name: &str) -> MySqlError {
        match self {
            NoCollation::Unknown => MySqlError::new(ErrorCode::UnknownCollation, &[&name]),
            NoCollation::OfSet(_) => {
                let of_texts = CharacterSet::default().name();
                MySqlError::new(ErrorCode::CollationCharacterSet, &[&name, &of_texts])
            }
            NoCollation::NotByCodePoints => {
                let what = format!("COLLATE {}", name.to_ascii_lowercase());
                MySqlError::new(ErrorCode::NotSupportedYet, &[&what])
            }
        }
    }
}

/// The characters of latin1 from 0x80 to 0x9F.
const HIGH_CONTROLS: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2C6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

/// The first byte of a character of four bytes.
const FOUR_BYTES: u8 = 0xF0;
/// The bytes of a text that error 1300 shows.
const SHOWN_BYTES: usize = 6;

impl CharacterSet {
    /// MySQL's name.
    pub const fn name(self) -> &'static str {
        match self {
            CharacterSet::Utf8mb4 => "utf8mb4",
            CharacterSet::Utf8mb3 => "utf8mb3",
            CharacterSet::Latin1 => "latin1",
            CharacterSet::Ascii => "ascii",
            CharacterSet::Binary => "binary",
        }
    }

    /// The set of that name.
    ///
    /// # Errors
    /// 1115 for one that is not served.
    pub fn parse(name: &str) -> Result<CharacterSet, MySqlError> {
        match name.to_ascii_lowercase().as_str() {
            "utf8mb4" => Ok(CharacterSet::Utf8mb4),
            "utf8mb3" | "utf8" => Ok(CharacterSet::Utf8mb3),
            "latin1" => Ok(CharacterSet::Latin1),
            "ascii" => Ok(CharacterSet::Ascii),
            "binary" => Ok(CharacterSet::Binary),
            _ => Err(MySqlError::new(ErrorCode::UnknownCharacterSet, &[&name])),
        }
    }

    /// The same for `character_set_client`.
    ///
    /// # Errors
    /// 1231 for a set that no server reads statements in, 1115 for one that is not served.
    pub fn parse_of_client(name: &str) -> Result<CharacterSet, MySqlError> {
        if WIDE.iter().any(|wide| wide.eq_ignore_ascii_case(name)) {
            return Err(not_for_clients(name));
        }
        CharacterSet::parse(name)
    }

    /// The collation that the name of the set alone means: the engine's for utf8mb4, MySQL's for
    /// others, of which only the name is kept.
    pub const fn default_collation(self) -> &'static str {
        match self {
            CharacterSet::Utf8mb4 => Collation::Utf8mb4_0900Bin.name(),
            CharacterSet::Utf8mb3 => "utf8mb3_general_ci",
            CharacterSet::Latin1 => "latin1_swedish_ci",
            CharacterSet::Ascii => "ascii_general_ci",
            CharacterSet::Binary => "binary",
        }
    }

    /// The number of the collation that clients are told of for texts in this set.
    pub const fn default_collation_id(self) -> u16 {
        match self {
            CharacterSet::Utf8mb4 => 255,
            CharacterSet::Utf8mb3 => 33,
            CharacterSet::Latin1 => 8,
            CharacterSet::Ascii => 11,
            CharacterSet::Binary => 63,
        }
    }

    /// The set that a collation belongs to.
    ///
    /// # Errors
    /// If no server has it, or its set is not served.
    pub fn of_collation(name: &str) -> Result<CharacterSet, NoCollation> {
        let name = name.to_ascii_lowercase();
        if name == CharacterSet::Binary.name() {
            return Ok(CharacterSet::Binary);
        }
        let (set, rest) = name.split_once('_').ok_or(NoCollation::Unknown)?;
        let others = OTHERS.iter().map(|(other, _)| *other).chain(WIDE);
        if let Some(other) = others.chain(["gb18030"]).find(|other| *other == set) {
            return Err(NoCollation::OfSet(other));
        }
        let words: Vec<&str> = rest.split('_').collect();
        let known: Vec<&str> = COLLATION_WORDS.split(' ').collect();
        let is_name = match words.split_last() {
            Some((&"bin", before)) => before.iter().all(|word| ["0900", "nopad"].contains(word)),
            Some((&("ci" | "cs" | "ks"), before)) => {
                !before.is_empty() && before.iter().all(|word| known.contains(word))
            }
            _ => false,
        };
        match CharacterSet::parse(set) {
            Ok(set) if set != CharacterSet::Binary && is_name => Ok(set),
            _ => Err(NoCollation::Unknown),
        }
    }

    /// The set of a collation that texts can be compared by: one by code points, or bytes.
    ///
    /// # Errors
    /// If it is no such collation.
    pub fn of_usable_collation(name: &str) -> Result<CharacterSet, NoCollation> {
        let set = CharacterSet::of_collation(name)?;
        let by_code_points = name.to_ascii_lowercase().ends_with("_bin");
        match by_code_points || set == CharacterSet::Binary {
            true => Ok(set),
            false => Err(NoCollation::NotByCodePoints),
        }
    }

    /// The number of a collation of this set, as clients are told of it.
    pub fn collation_id(self, name: &str) -> u16 {
        if name == Collation::default().name() {
            return self.default_collation_id();
        }
        let known = COLLATIONS.iter().find(|(_, known)| *known == name);
        known.map_or(self.default_collation_id(), |(id, _)| *id)
    }

    /// The set and the name of the collation that a client names by its number when it connects;
    /// `None` for a number that MySQL does not know, which means the server's default.
    ///
    /// # Errors
    /// 1115 for sets that are not served, 1231 for those that no server reads statements in.
    pub fn of_collation_id(id: u16) -> Result<Option<(CharacterSet, &'static str)>, MySqlError> {
        let of_range = match id {
            35 | 54..=56 | 60..=62 | 90 | 101..=151 | 159..=183 => {
                let name = match id {
                    35 | 90 | 128..=151 | 159 => "ucs2",
                    56 | 62 => "utf16le",
                    60 | 61 | 160..=183 => "utf32",
                    _ => "utf16",
                };
                return Err(not_for_clients(name));
            }
            248..=250 => {
                return Err(MySqlError::new(
                    ErrorCode::UnknownCharacterSet,
                    &[&"gb18030"],
                ));
            }
            192..=223 => Some(CharacterSet::Utf8mb3),
            224..=247 | 255..=323 => Some(CharacterSet::Utf8mb4),
            _ => None,
        };
        let default = CharacterSet::default();
        if id == default.default_collation_id() {
            return Ok(Some((default, default.default_collation())));
        }
        if let Some((_, name)) = COLLATIONS.iter().find(|(known, _)| *known == id) {
            let set = CharacterSet::of_collation(name).map_err(|no| no.error(name))?;
            return Ok(Some((set, *name)));
        }
        if let Some((name, _)) = OTHERS.iter().find(|(_, ids)| ids.contains(&id)) {
            return Err(MySqlError::new(ErrorCode::UnknownCharacterSet, &[name]));
        }
        Ok(of_range.map(|set| (set, set.default_collation())))
    }

    /// The most bytes that a character has.
    pub const fn character_bytes(self) -> u32 {
        match self {
            CharacterSet::Utf8mb4 => 4,
            CharacterSet::Utf8mb3 => 3,
            CharacterSet::Latin1 | CharacterSet::Ascii | CharacterSet::Binary => 1,
        }
    }

    /// Whether some texts look different in this set than in UTF-8.
    pub const fn converts(self) -> bool {
        match self {
            CharacterSet::Utf8mb4 | CharacterSet::Binary => false,
            CharacterSet::Utf8mb3 | CharacterSet::Latin1 | CharacterSet::Ascii => true,
        }
    }

    /// A text in this set as UTF-8; without a copy unless a character changes.
    ///
    /// # Errors
    /// 1300 for bytes that are no characters of the set.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, MySqlError> {
        if self == CharacterSet::Latin1 && !bytes.is_ascii() {
            return Ok(Cow::Owned(bytes.iter().copied().map(of_latin1).collect()));
        }
        let read = std::str::from_utf8(bytes);
        let text = read.map_err(|wrong| self.refused(bytes, wrong.valid_up_to()))?;
        let refused = match self {
            CharacterSet::Ascii => bytes.iter().position(|byte| !byte.is_ascii()),
            CharacterSet::Utf8mb3 => bytes.iter().position(|byte| *byte >= FOUR_BYTES),
            _ => None,
        };
        match refused {
            Some(place) => Err(self.refused(bytes, place)),
            None => Ok(Cow::Borrowed(text)),
        }
    }

    /// A text that is UTF-8 in this set; what the set does not have becomes `?`.
    pub fn encode(self, text: &[u8]) -> Cow<'_, [u8]> {
        self.encode_or(text, |_, out| out.push(b'?'))
    }

    /// The same, but `replace` writes what stands for characters that the set does not have.
    pub fn encode_or(self, text: &[u8], replace: impl Fn(char, &mut Vec<u8>)) -> Cow<'_, [u8]> {
        let is_same = match self {
            CharacterSet::Utf8mb4 | CharacterSet::Binary => true,
            CharacterSet::Utf8mb3 => text.iter().all(|byte| *byte < FOUR_BYTES),
            CharacterSet::Latin1 | CharacterSet::Ascii => text.is_ascii(),
        };
        if is_same {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        for character in String::from_utf8_lossy(text).chars() {
            let byte = match self {
                CharacterSet::Latin1 => to_latin1(character),
                _ => u8::try_from(character).ok().filter(u8::is_ascii),
            };
            match byte {
                Some(byte) => out.push(byte),
                None if self == CharacterSet::Utf8mb3 && character.len_utf8() < 4 => {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                None => replace(character, &mut out),
            }
        }
        Cow::Owned(out)
    }

    fn refused(self, bytes: &[u8], place: usize) -> MySqlError {
        let wrong: String = bytes
            .iter()
            .skip(place)
            .take(SHOWN_BYTES)
            .map(|byte| format!("\\x{byte:02X}"))
            .collect();
        // The set that names are kept in stands for bytes.
        let name = match self {
            CharacterSet::Binary => CharacterSet::Utf8mb4.name(),
            other => other.name(),
        };
        MySqlError::new(ErrorCode::InvalidCharacterString, &[&name, &wrong])
    }
}

fn not_for_clients(name: &str) -> MySqlError {
    let code = ErrorCode::WrongValueForVariable;
    MySqlError::new(code, &[&"character_set_client", &name])
}

fn of_latin1(byte: u8) -> char {
    let high = byte.checked_sub(0x80).map(usize::from);
    let high = high.and_then(|place| HIGH_CONTROLS.get(place));
    high.copied().unwrap_or(char::from(byte))
}

fn to_latin1(character: char) -> Option<u8> {
    match u8::try_from(character) {
        Ok(byte) if !(0x80..0xA0).contains(&byte) => Some(byte),
        _ => (0x80..=0x9F)
            .zip(HIGH_CONTROLS)
            .find_map(|(byte, other)| (other == character).then_some(byte)),
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
            (
                "\u{178}\u{81}\u{8D}\u{8F}\u{90}\u{9D}",
                b"\x9F\x81\x8D\x8F\x90\x9D",
            ),
        ] {
            assert_eq!(&*CharacterSet::Latin1.encode(text.as_bytes()), expected);
            assert_eq!(CharacterSet::Latin1.decode(expected).as_deref(), Ok(text));
        }
        let all: Vec<u8> = (0..=255).collect();
        let text = CharacterSet::Latin1.decode(&all).expect("every byte");
        assert_eq!(*CharacterSet::Latin1.encode(text.as_bytes()), all);
    }

    #[test]
    fn what_a_set_does_not_have_becomes_a_question_mark() {
        let text = "a\u{FC}\u{80}\u{6F22}\u{1F600}";
        for (set, expected) in [
            (CharacterSet::Utf8mb4, text.as_bytes()),
            (CharacterSet::Binary, text.as_bytes()),
            (CharacterSet::Utf8mb3, "a\u{FC}\u{80}\u{6F22}?".as_bytes()),
            (CharacterSet::Latin1, b"a\xFC???"),
            (CharacterSet::Ascii, b"a????"),
        ] {
            assert_eq!(&*set.encode(text.as_bytes()), expected, "{set:?}");
        }
    }

    #[test]
    fn what_is_no_character_is_refused() {
        for (set, bytes, message) in [
            (
                CharacterSet::Utf8mb4,
                &b"a\xFC"[..],
                "utf8mb4 character string: '\\xFC'",
            ),
            (
                CharacterSet::Binary,
                b"a\xFC",
                "utf8mb4 character string: '\\xFC'",
            ),
            (
                CharacterSet::Ascii,
                b"ab\xC3\xBC",
                "ascii character string: '\\xC3\\xBC'",
            ),
            (
                CharacterSet::Utf8mb3,
                b"\xF0\x9F\x98\x80y",
                "utf8mb3 character string: '\\xF0\\x9F\\x98\\x80\\x79'",
            ),
        ] {
            let error = set.decode(bytes).expect_err("no character");
            assert_eq!(error.code, 1300);
            assert_eq!(error.message, format!("Invalid {message}"));
        }
    }

    #[test]
    fn collations_have_sets() {
        let of = |id| CharacterSet::of_collation_id(id).map_err(|error| error.message);
        assert_eq!(
            of(255),
            Ok(Some((CharacterSet::Utf8mb4, "utf8mb4_0900_bin")))
        );
        assert_eq!(
            of(45),
            Ok(Some((CharacterSet::Utf8mb4, "utf8mb4_general_ci")))
        );
        assert_eq!(
            of(33),
            Ok(Some((CharacterSet::Utf8mb3, "utf8mb3_general_ci")))
        );
        assert_eq!(
            of(200),
            Ok(Some((CharacterSet::Utf8mb3, "utf8mb3_general_ci")))
        );
        assert_eq!(of(47), Ok(Some((CharacterSet::Latin1, "latin1_bin"))));
        assert_eq!(of(63), Ok(Some((CharacterSet::Binary, "binary"))));
        assert_eq!(of(0), Ok(None));
        assert_eq!(of(28), Err("Unknown character set: 'gbk'".to_owned()));
        let wide = "Variable 'character_set_client' can't be set to the value of 'ucs2'";
        assert_eq!(of(35), Err(wide.to_owned()));
        for (id, name) in COLLATIONS {
            let set = CharacterSet::of_collation(name).expect(name);
            let told = if id == 309 { 255 } else { id };
            assert_eq!(set.collation_id(name), told, "{name}");
        }
        let gbk = NoCollation::OfSet("gbk");
        for (name, no) in [
            ("gbk_chinese_ci", gbk),
            ("gbk_bin", gbk),
            ("nope", NoCollation::Unknown),
            ("", NoCollation::Unknown),
            ("binary_ci", NoCollation::Unknown),
            ("nosuch_bin", NoCollation::Unknown),
            ("utf8mb4_nosuch_ci", NoCollation::Unknown),
            ("utf8mb4_unicode_bin", NoCollation::Unknown),
            ("utf8mb4_ci", NoCollation::Unknown),
            ("utf8mb4_", NoCollation::Unknown),
        ] {
            assert_eq!(CharacterSet::of_collation(name), Err(no), "{name}");
        }
        for (name, set) in [
            ("utf8mb4_nopad_bin", Ok(CharacterSet::Utf8mb4)),
            ("UTF8_BIN", Ok(CharacterSet::Utf8mb3)),
            ("binary", Ok(CharacterSet::Binary)),
            (
                "utf8mb4_es_trad_0900_ai_ci",
                Err(NoCollation::NotByCodePoints),
            ),
            ("latin1_general_cs", Err(NoCollation::NotByCodePoints)),
        ] {
            assert_eq!(CharacterSet::of_usable_collation(name), set, "{name}");
        }
    }
}
