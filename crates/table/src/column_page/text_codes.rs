//! Texts of a page that repeat: the different ones stand there once, and a number of one or two
//! bytes for each row ("dictionary encoding").
//!
//! **Owns** which columns of texts are stored so, how their codes are written, and how they are
//! read. **Never** knows where in a page they stand.
//!
//! ```text
//! texts    AIR  MAIL  AIR  SHIP  AIR  MAIL       34 bytes with their ends
//! codes    0    1     0    2     0    1           6 bytes
//! words    AIR  MAIL  SHIP                       27 bytes with their ends, whatever the rows are
//! ```
//!
//! The words are those of one page: no page knows of another, and a row that moves takes its text
//! with it. NULL has the code of the empty text.
//!
//! **Source**: Abadi, Madden, Ferreira, "Integrating Compression and Execution in Column-Oriented
//! Database Systems", SIGMOD 2006; a dictionary for each block as in Data Blocks (Lang et al.,
//! SIGMOD 2016).
//!
//! **Cost**: `docs/decisions/0034-texts-as-codes.md`.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, GenericByteArray, GenericByteViewArray};
use arrow_schema::DataType;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

use super::value_bytes::ValueBytes;

const END_BYTES: usize = size_of::<u32>();
/// Most words of a column: what a code of two bytes can tell apart.
const WORDS_MAX: usize = 1 << 16;
/// Texts are stored as codes where those and their words take at most that many of so many parts of
/// what the texts take.
const WORTHWHILE: (usize, usize) = (5, 8);
/// So often it is looked at whether codes may still be worth it: they are not if those of the rows
/// since the last look are not, since words become fewer, not more. Texts that do not repeat cost
/// the hashes of the first rows and no more.
const ROWS_PER_LOOK: usize = 1024;
/// At the first look most words are new ones, whatever they are.
const FIRST_LOOK: (usize, usize) = (15, 16);
/// Views that were seen lately, whose texts are not hashed again.
const RECENT_VIEWS: usize = 256;

/// What texts take in pages where those that repeat are codes, of what they take as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextShare {
    pub(super) stored_bytes: usize,
    pub(super) plain_bytes: usize,
}

impl TextShare {
    /// What texts of so many bytes take, if they are like those that this was seen of; all of it
    /// where nothing was seen.
    pub(super) fn of(self, bytes: usize) -> usize {
        if self.plain_bytes == 0 {
            return bytes;
        }
        let part = bytes as u128 * self.stored_bytes as u128 / self.plain_bytes as u128;
        usize::try_from(part).unwrap_or(bytes)
    }

    fn is_at_most(self, (parts, all): (usize, usize)) -> bool {
        self.stored_bytes * all <= self.plain_bytes * parts
    }
}

/// How many different texts a column of a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextCodes {
    words: usize,
}

impl TextCodes {
    /// `None` where a column cannot have so many.
    pub(super) fn of(words: usize) -> Option<TextCodes> {
        (1..=WORDS_MAX)
            .contains(&words)
            .then_some(TextCodes { words })
    }

    /// The different texts.
    pub(super) fn words(self) -> usize {
        self.words
    }

    /// The bytes of a code.
    pub(super) fn width(self) -> usize {
        if self.words <= 1 << 8 { 1 } else { 2 }
    }
}

/// The codes of a column in a page and its words.
#[derive(Clone, Copy)]
pub(super) struct CodedTexts<'a> {
    pub(super) codes: Codes<'a>,
    /// Where words begin and end in `data`.
    pub(super) ends: &'a [[u8; END_BYTES]],
    pub(super) data: &'a [u8],
}

/// A code for each row.
#[derive(Clone, Copy)]
pub(crate) enum Codes<'a> {
    Bytes(&'a [u8]),
    Pairs(&'a [[u8; 2]]),
}

impl<'a> Codes<'a> {
    /// From the bytes of all, one or two each.
    pub(super) fn of(bytes: &'a [u8], width: usize) -> Codes<'a> {
        match width {
            1 => Codes::Bytes(bytes),
            _ => Codes::Pairs(bytes.as_chunks().0),
        }
    }

    /// The greatest; 0 where there are no rows.
    pub(crate) fn greatest(self) -> usize {
        match self {
            Codes::Bytes(codes) => codes.iter().max().copied().map_or(0, usize::from),
            Codes::Pairs(codes) => {
                let codes = codes.iter().map(|code| u16::from_le_bytes(*code));
                codes.max().map_or(0, usize::from)
            }
        }
    }

    /// `None` where there is no such row.
    pub(super) fn get(self, slot: usize) -> Option<usize> {
        match self {
            Codes::Bytes(codes) => codes.get(slot).copied().map(usize::from),
            Codes::Pairs(codes) => codes.get(slot).map(|code| u16::from_le_bytes(*code).into()),
        }
    }
}

impl<'a> CodedTexts<'a> {
    /// From the codes of all rows and the bytes of the words; `None` where those are too few.
    pub(super) fn of(form: TextCodes, codes: &'a [u8], words: &'a [u8]) -> Option<CodedTexts<'a>> {
        let ends_bytes = form.words.checked_add(1)?.checked_mul(END_BYTES)?;
        let (ends, data) = words.split_at_checked(ends_bytes)?;
        Some(CodedTexts {
            codes: Codes::of(codes, form.width()),
            ends: ends.as_chunks().0,
            data,
        })
    }

    /// The text of a code; `None` where none has it.
    pub(super) fn word(&self, code: usize) -> Option<&'a [u8]> {
        let ends: &[_; 2] = self.ends.get(code..)?.first_chunk()?;
        let [start, end] = ends.map(|end| u32::from_le_bytes(end) as usize);
        self.data.get(start..end)
    }

    /// The code of a row.
    pub(super) fn word_of(&self, slot: u32) -> Option<u32> {
        self.codes.get(slot as usize).map(|code| code as u32)
    }

    /// The text of a row.
    pub(super) fn text(&self, slot: usize) -> Option<&'a [u8]> {
        self.word(self.codes.get(slot)?)
    }

    /// The code of a text; `None` where no row of the page had it. **Cost**: a comparison with
    /// each word.
    pub(super) fn code(&self, text: &[u8]) -> Option<usize> {
        let words = self.ends.len().saturating_sub(1);
        (0..words).find(|code| self.word(*code) == Some(text))
    }
}

/// The codes of some rows, and their words.
#[derive(Debug)]
pub(super) struct TextDictionary {
    codes: Vec<u16>,
    ends: Vec<u32>,
    data: Vec<u8>,
}

impl TextDictionary {
    /// Of the texts of some arrays, which take so many bytes in pages as they are; `None`
    /// where codes would not be worth it.
    pub(super) fn of<'a>(
        columns: impl Iterator<Item = &'a dyn Array>,
        rows: usize,
        plain_bytes: ValueBytes,
    ) -> Option<(TextCodes, TextDictionary)> {
        let mut coder = Coder {
            known: HashTable::new(),
            dictionary: TextDictionary {
                codes: Vec::with_capacity(rows),
                ends: vec![0],
                data: Vec::new(),
            },
            looked: TextShare::default(),
            plain_bytes: 0,
        };
        for column in columns {
            match column.data_type() {
                DataType::Utf8View => coder.add_views(column.as_string_view())?,
                DataType::BinaryView => coder.add_views(column.as_binary_view())?,
                DataType::Utf8 => coder.add_texts(column.as_string::<i32>())?,
                DataType::LargeUtf8 => coder.add_texts(column.as_string::<i64>())?,
                DataType::Binary => coder.add_texts(column.as_binary::<i32>())?,
                DataType::LargeBinary => coder.add_texts(column.as_binary::<i64>())?,
                _ => return None,
            }
        }
        let dictionary = coder.dictionary;
        let codes = dictionary.form()?;
        let share = TextShare {
            stored_bytes: dictionary.coded_bytes(),
            plain_bytes: plain_bytes.sum() + rows * END_BYTES,
        };
        share.is_at_most(WORTHWHILE).then_some((codes, dictionary))
    }

    fn form(&self) -> Option<TextCodes> {
        TextCodes::of(self.ends.len() - 1)
    }

    /// What the words take with their ends.
    pub(super) fn words_bytes(&self) -> usize {
        self.ends.len() * END_BYTES + self.data.len()
    }

    fn coded_bytes(&self) -> usize {
        let width = self.form().map_or(size_of::<u16>(), TextCodes::width);
        self.words_bytes() + self.codes.len() * width
    }

    /// Writes a code for each row, and the words.
    pub(super) fn write(&self, codes: &mut [u8], words: &mut [u8]) {
        match self.form().map(TextCodes::width) {
            Some(1) => {
                let places = codes.iter_mut().zip(&self.codes);
                places.for_each(|(place, code)| *place = *code as u8);
            }
            _ => {
                let places = codes.as_chunks_mut().0.iter_mut().zip(&self.codes);
                places.for_each(|(place, code)| *place = code.to_le_bytes());
            }
        }
        let (ends, data) = words.split_at_mut(self.ends.len() * END_BYTES);
        let places = ends.as_chunks_mut().0.iter_mut().zip(&self.ends);
        places.for_each(|(place, end)| *place = end.to_le_bytes());
        data.copy_from_slice(&self.data);
    }
}

/// A dictionary that is being made.
struct Coder {
    /// The codes by the hashes of their texts.
    known: HashTable<u16>,
    dictionary: TextDictionary,
    /// What all took at the last look.
    looked: TextShare,
    /// What the texts so far take as they are.
    plain_bytes: usize,
}

impl Coder {
    /// The codes of the rows of an array; `None` as soon as they are not worth it.
    fn add_views<T: ByteViewType>(&mut self, array: &GenericByteViewArray<T>) -> Option<()> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let mut recent: [Option<(u128, u16)>; RECENT_VIEWS] = [None; RECENT_VIEWS];
        for (row, view) in array.views().iter().enumerate() {
            let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
            let view = if is_null { 0 } else { *view };
            let place = &mut recent[place_of(view)];
            let code = match *place {
                Some((seen, code)) if seen == view => code,
                _ => {
                    let text: &[u8] = match is_null {
                        true => &[],
                        false => array.value(row).as_ref(),
                    };
                    let code = self.code(text)?;
                    *place = Some((view, code));
                    code
                }
            };
            self.push(code, (view as u32) as usize)?;
        }
        Some(())
    }

    /// The same where texts lie one behind the other.
    fn add_texts<T: ByteArrayType>(&mut self, array: &GenericByteArray<T>) -> Option<()> {
        for row in 0..array.len() {
            let text: &[u8] = match array.is_null(row) {
                true => &[],
                false => array.value(row).as_ref(),
            };
            let code = self.code(text)?;
            self.push(code, text.len())?;
        }
        Some(())
    }

    fn push(&mut self, code: u16, text_bytes: usize) -> Option<()> {
        self.dictionary.codes.push(code);
        self.plain_bytes += END_BYTES + text_bytes;
        match self.dictionary.codes.len().is_multiple_of(ROWS_PER_LOOK) {
            true => self.look(),
            false => Some(()),
        }
    }

    #[cold]
    fn look(&mut self) -> Option<()> {
        let all = TextShare {
            stored_bytes: self.dictionary.coded_bytes(),
            plain_bytes: self.plain_bytes,
        };
        let since = TextShare {
            stored_bytes: all.stored_bytes - self.looked.stored_bytes,
            plain_bytes: all.plain_bytes - self.looked.plain_bytes,
        };
        let bound = match self.looked.plain_bytes {
            0 => FIRST_LOOK,
            _ => WORTHWHILE,
        };
        // Codes become longer at some row, which is no reason to give up.
        let is_hopeful = since.is_at_most(bound) || all.is_at_most(WORTHWHILE);
        self.looked = all;
        is_hopeful.then_some(())
    }

    fn code(&mut self, text: &[u8]) -> Option<u16> {
        let TextDictionary { ends, data, .. } = &mut self.dictionary;
        let word = |code: &u16| {
            let code = usize::from(*code);
            &data[ends[code] as usize..ends[code + 1] as usize]
        };
        let hash = |code: &u16| text_hash(word(code));
        let place = self
            .known
            .entry(text_hash(text), |code| word(code) == text, hash);
        match place {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(place) => {
                let code = u16::try_from(ends.len() - 1).ok()?;
                place.insert(code);
                data.extend_from_slice(text);
                ends.push(u32::try_from(data.len()).ok()?);
                Some(code)
            }
        }
    }
}

/// The hash of a text. Clients choose texts, so it has secrets of the process.
fn text_hash(text: &[u8]) -> u64 {
    static SECRETS: LazyLock<RapidSecrets> = LazyLock::new(|| {
        let seed = RandomState::new().hash_one("the seed of the hashes of texts");
        RapidSecrets::seed(seed)
    });
    rapidhash_v3_inline::<true, false, false>(text, &SECRETS)
}

/// Where a view is remembered: equal views of an array show equal texts.
fn place_of(view: u128) -> usize {
    let folded = (view as u64) ^ (view >> 64) as u64;
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}

const _: () = assert!(
    RECENT_VIEWS == 1 << 8,
    "a place is the upper byte of a product"
);

#[cfg(test)]
mod tests {
    use arrow_array::StringViewArray;

    use super::super::value_bytes::value_bytes;
    use super::*;

    fn dictionary(arrays: &[StringViewArray]) -> Option<TextDictionary> {
        let columns = arrays.iter().map(|array| array as &dyn Array);
        let plain = columns
            .clone()
            .map(|array| value_bytes(array, 0, array.len()));
        let plain = plain.fold(ValueBytes::default(), ValueBytes::plus);
        let rows = columns.clone().map(Array::len).sum();
        TextDictionary::of(columns, rows, plain).map(|(_, dictionary)| dictionary)
    }

    fn written(dictionary: &TextDictionary) -> (TextCodes, Vec<u8>, Vec<u8>) {
        let form = dictionary.form().unwrap();
        let mut codes = vec![0; dictionary.codes.len() * form.width()];
        let mut words = vec![0; dictionary.words_bytes()];
        dictionary.write(&mut codes, &mut words);
        (form, codes, words)
    }

    #[test]
    fn texts_come_back_from_their_codes() {
        for words in [1, 3, 255, 256, 257, 2000] {
            let word = |row: usize| row * 7919 % 9001 * 31 % words;
            let text = |row: usize| format!("a word that is longer than its view {}", word(row));
            let texts: Vec<Option<String>> = (0..9000)
                .map(|row| (row % 5 != 0).then(|| text(row)))
                .collect();
            let arrays = [
                StringViewArray::from_iter(&texts[..4000]),
                StringViewArray::from_iter(&texts[4000..]),
            ];
            let dictionary = dictionary(&arrays).unwrap();
            let (form, codes, words) = written(&dictionary);
            let coded = CodedTexts::of(form, &codes, &words).unwrap();
            for (slot, text) in texts.iter().enumerate() {
                let expected = text.as_deref().unwrap_or_default();
                assert_eq!(coded.text(slot), Some(expected.as_bytes()));
                assert_eq!(coded.code(expected.as_bytes()), coded.codes.get(slot));
            }
            assert_eq!(coded.text(9000), None);
            assert_eq!(coded.code(b"another"), None);
        }
    }

    #[test]
    fn texts_that_do_not_repeat_have_no_codes() {
        let texts = |words: usize| {
            let text = |row: usize| format!("number {}", row * 7919 % 5003 * 31 % words);
            StringViewArray::from_iter_values((0..5003).map(text))
        };
        assert!(dictionary(&[texts(5003)]).is_none());
        assert!(dictionary(&[texts(4500)]).is_none());
        assert!(dictionary(&[texts(1000)]).is_some());
        assert!(dictionary(&[StringViewArray::from_iter_values(["a", "b"])]).is_none());
        let nulls = StringViewArray::new_null(100);
        assert_eq!(written(&dictionary(&[nulls]).unwrap()).1, vec![0; 100]);
    }

    #[test]
    fn too_few_bytes_are_no_words() {
        let form = TextCodes::of(2).unwrap();
        assert!(CodedTexts::of(form, &[0, 1], &[0; 11]).is_none());
        let words: Vec<u8> = [0_u32, 1, 9].map(u32::to_le_bytes).concat();
        let words = [&words[..], b"ab"].concat();
        let coded = CodedTexts::of(form, &[0, 1, 2], &words).unwrap();
        assert_eq!(coded.text(0), Some(&b"a"[..]));
        assert_eq!(
            (coded.text(1), coded.text(2), coded.text(3)),
            (None, None, None)
        );
        assert!(TextCodes::of(0).is_none() && TextCodes::of(WORDS_MAX + 1).is_none());
    }
}
