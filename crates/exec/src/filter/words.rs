//! Columns of texts that are compared with a few short ones.
//!
//! A view of a text of up to 12 bytes holds its length and all its bytes, filled up with zeros: two
//! such texts are equal if their views are, as numbers of 128 bits. A view of a longer text has
//! another length. So a row is compared without a look at the bytes of its text, and without a
//! branch.

use arrow::array::builder::make_view;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{BinaryViewType, DataType, StringViewType};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::physical_expr::expressions::Literal;

/// A longer list is looked up in a hash table.
const WORDS_MAX: usize = 8;
/// Longer texts are not within their views.
const WORD_BYTES_MAX: usize = 12;

/// `column = word`, `column IN (words)`, or their opposite.
#[derive(Debug)]
pub(super) struct Words {
    column: usize,
    words: Vec<u128>,
    is_negated: bool,
}

impl Words {
    /// The comparison of a column of a type with literals; `None` where one is too long, or they
    /// are too many.
    pub(super) fn of<'a>(
        (column, column_type): (usize, &DataType),
        literals: impl Iterator<Item = &'a Literal>,
        is_negated: bool,
    ) -> Option<Words> {
        let mut words = Vec::new();
        for literal in literals {
            match word(literal.value(), column_type)? {
                Some(word) => words.push(word),
                // A row that no other word equals is then unknown: it passes neither way.
                None if is_negated => return None,
                None => {}
            }
        }
        let is_few = (1..=WORDS_MAX).contains(&words.len());
        is_few.then_some(Words {
            column,
            words,
            is_negated,
        })
    }

    /// A bit for each row for which the comparison is true.
    pub(super) fn true_rows(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        let column = batch.column(self.column);
        let texts = column.as_byte_view_opt::<StringViewType>();
        let bytes = column.as_byte_view_opt::<BinaryViewType>();
        let views = match (texts, bytes) {
            (Some(texts), _) => texts.views(),
            (_, Some(bytes)) => bytes.views(),
            _ => return internal_err!("texts of type {} have no views", column.data_type()),
        };
        let is_negated = self.is_negated;
        let bits = match self.words.len() {
            0..=1 => equal(views, self.filled_up::<1>(), is_negated),
            2 => equal(views, self.filled_up::<2>(), is_negated),
            3..=4 => equal(views, self.filled_up::<4>(), is_negated),
            _ => equal(views, self.filled_up::<WORDS_MAX>(), is_negated),
        };
        Ok(valid_only(bits, column.nulls()))
    }

    /// The words, the last one as often as it takes.
    fn filled_up<const N: usize>(&self) -> [u128; N] {
        let last = self.words.last().copied().unwrap_or_default();
        let mut words = [last; N];
        for (to, from) in words.iter_mut().zip(&self.words) {
            *to = *from;
        }
        words
    }
}

/// The view of a short text of a type, `Some(None)` for NULL.
fn word(value: &ScalarValue, column_type: &DataType) -> Option<Option<u128>> {
    let bytes = match (value, column_type) {
        (ScalarValue::Utf8View(text), DataType::Utf8View) => text.as_ref().map(String::as_bytes),
        (ScalarValue::BinaryView(bytes), DataType::BinaryView) => bytes.as_deref(),
        _ => return None,
    };
    match bytes {
        Some(bytes) if bytes.len() > WORD_BYTES_MAX => None,
        bytes => Some(bytes.map(|bytes| make_view(bytes, 0, 0))),
    }
}

/// A bit for each view: whether it is one of the words, or whether it is none.
fn equal<const N: usize>(views: &[u128], words: [u128; N], is_negated: bool) -> BooleanBuffer {
    let packed = views.chunks(64).map(|views| {
        let mut bits = 0;
        for (place, view) in views.iter().enumerate() {
            let is_one = { words.iter() }.fold(false, |found, word| found | (view == word));
            bits |= u64::from(is_one != is_negated) << place;
        }
        bits.to_le()
    });
    let packed: Vec<u64> = packed.collect();
    BooleanBuffer::new(Buffer::from_vec(packed), 0, views.len())
}

/// The bits of the rows that are not NULL.
pub(crate) fn valid_only(bits: BooleanBuffer, nulls: Option<&NullBuffer>) -> BooleanBuffer {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => &bits & nulls.inner(),
        None => bits,
    }
}
