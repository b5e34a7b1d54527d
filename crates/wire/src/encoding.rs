//! Texts as a client reads them: `character_set_results`.

use std::borrow::Cow;

use mayfly_types::CharacterSet;

/// How texts, names of columns and errors are written, and what is said of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding {
    /// `None` for NULL: nothing is converted, and columns are described in their own set.
    set: Option<CharacterSet>,
    collation_id: u16,
}

impl Default for TextEncoding {
    fn default() -> TextEncoding {
        TextEncoding::of(CharacterSet::default())
    }
}

impl TextEncoding {
    /// What `character_set_results` is NULL for: texts as they are.
    pub const UNCONVERTED: TextEncoding = TextEncoding {
        set: None,
        collation_id: CharacterSet::Utf8mb4.default_collation_id(),
    };

    /// Texts in a character set.
    pub const fn of(set: CharacterSet) -> TextEncoding {
        TextEncoding::with_collation(set, set.default_collation_id())
    }

    /// The same, told by the number of a collation of the set.
    pub const fn with_collation(set: CharacterSet, collation_id: u16) -> TextEncoding {
        TextEncoding {
            set: Some(set),
            collation_id,
        }
    }

    /// Whether a text may have to be written otherwise than it is.
    pub(crate) fn converts(self) -> bool {
        self.set.is_some_and(CharacterSet::converts)
    }

    /// A text that is UTF-8 in this encoding; what it does not have becomes `?`.
    pub(crate) fn encode(self, text: &[u8]) -> Cow<'_, [u8]> {
        match self.set {
            Some(set) => set.encode(text),
            None => Cow::Borrowed(text),
        }
    }

    /// The text of an error: what the set does not have is spelled by its number, as MySQL does.
    pub(crate) fn encode_message(self, text: &str) -> Cow<'_, [u8]> {
        let set = self.set.unwrap_or_default();
        set.encode_or(text.as_bytes(), |character, out| {
            match u32::from(character) {
                number @ 0..=0xFFFF => out.extend_from_slice(format!("\\{number:04X}").as_bytes()),
                // Messages have no characters beyond them.
                _ => out.push(b'?'),
            }
        })
    }

    /// What clients are told of a column's collation that has that number.
    pub(crate) fn told_collation(self, of_column: u16) -> u16 {
        match self.set {
            Some(_) => self.collation_id,
            None => of_column,
        }
    }

    /// The most bytes that a character of a column may need.
    pub(crate) fn character_bytes(self) -> u32 {
        self.set.unwrap_or_default().character_bytes()
    }

    /// The most bytes that a byte of a long text may become: MySQL multiplies them as if each were
    /// a character.
    pub(crate) fn byte_bytes(self) -> u32 {
        self.set.map_or(1, CharacterSet::character_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_spell_what_a_set_does_not_have() {
        let latin1 = TextEncoding::of(CharacterSet::Latin1);
        let message = latin1.encode_message("Table 't.\u{FC}\u{6F22}\u{1F600}'");
        assert_eq!(&*message, b"Table 't.\xFC\\6F22?'");
        let text = "\u{FC}\u{6F22}";
        let none = TextEncoding::UNCONVERTED;
        assert_eq!(&*none.encode_message(text), text.as_bytes());
        assert_eq!(&*none.encode(text.as_bytes()), text.as_bytes());
    }
}
