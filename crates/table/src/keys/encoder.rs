//! Values as keys: bytes that compare as the values do.
//!
//! **Owns** how each type is written. **Never** looks at a tree.
//!
//! | value | bytes |
//! | --- | --- |
//! | of a column that takes NULL | a byte in front: 0 for NULL, which comes first, else 1 |
//! | integers, decimals, dates, times | big endian, the sign turned |
//! | floating point | big endian, the sign turned, negative ones inverted; `-0` is `0` |
//! | text and bytes | as they are, closed by `00 00`; see [`byte_string`] for zero bytes |
//! | a descending part | every byte inverted |
//!
//! No key is the beginning of another one, so a row number may be written behind it: behind all
//! keys of an index that is not unique, and behind those with a NULL of one that is.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::byte_string;
use crate::column_page::{StoredColumn, StoredValue};
use crate::definition::{Column, Key};
use crate::tree::append_row_id;

pub(super) const NULL: u8 = 0;
const VALUE: u8 = 1;

/// Writes the keys of one index.
#[derive(Debug, Clone)]
pub(crate) struct KeyEncoder {
    pub(super) parts: Vec<Part>,
    is_unique: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) data_type: DataType,
    pub(super) kind: Kind,
    /// Characters of a text or bytes of a binary string that count.
    pub(super) prefix: Option<usize>,
    pub(super) is_nullable: bool,
    pub(super) is_descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unsigned,
    Signed,
    Float,
    Text,
    Bytes,
}

/// The keys of some rows, one after the other.
#[derive(Debug, Default)]
pub(crate) struct EncodedKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Rows whose key cannot equal another one: they have a NULL.
    with_null: Vec<bool>,
    /// The numbers of the rows.
    numbers: Vec<u64>,
    /// The rows in the order of their keys.
    order: Vec<u32>,
}

impl EncodedKeys {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn key(&self, row: usize) -> &[u8] {
        let start = match row {
            0 => 0,
            _ => self.ends[row - 1],
        };
        &self.bytes[start..self.ends[row]]
    }

    /// The rows in the order of their keys.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    pub(crate) fn number(&self, row: usize) -> u64 {
        self.numbers[row]
    }

    /// What the keys take on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let row_bytes = size_of::<usize>() + size_of::<u64>() + size_of::<u32>() + 1;
        self.bytes.capacity() + self.ends.capacity() * row_bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.with_null.clear();
        self.numbers.clear();
        self.order.clear();
    }

    fn sort(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.extend(0..self.len() as u32);
        let key = |row: &u32| self.key(*row as usize);
        if !order.is_sorted_by_key(key) {
            order.sort_by(|left, right| key(left).cmp(key(right)));
        }
        self.order = order;
    }

    pub(crate) fn has_null(&self, row: usize) -> bool {
        self.with_null[row]
    }
}

impl KeyEncoder {
    pub(crate) fn new(key: &Key, columns: &[Column]) -> Self {
        let parts = key.parts.iter().map(|part| {
            let column = &columns[part.column];
            let data_type = column.column_type.data_type();
            Part {
                kind: Kind::of(&data_type),
                data_type,
                prefix: part.prefix.map(|prefix| prefix as usize),
                is_nullable: column.is_nullable,
                is_descending: part.is_descending,
            }
        });
        Self {
            parts: parts.collect(),
            is_unique: key.is_unique(),
        }
    }

    /// The entries of rows: the columns of the key in its order, which rows of them, and the number
    /// of each row.
    pub(crate) fn encode<V: Values>(
        &self,
        columns: &[V],
        rows: impl Iterator<Item = usize>,
        number: impl Fn(usize) -> u64,
        keys: &mut EncodedKeys,
    ) {
        keys.clear();
        for row in rows {
            let mut has_null = false;
            for (part, values) in self.parts.iter().zip(columns) {
                has_null |= part.write(values.value(row).as_deref(), &mut keys.bytes);
            }
            if has_null || !self.is_unique {
                append_row_id(&mut keys.bytes, number(row));
            }
            keys.ends.push(keys.bytes.len());
            keys.with_null.push(has_null);
            keys.numbers.push(number(row));
        }
        keys.sort();
    }

    /// The beginning that all keys share whose first parts have these values; whether one of them
    /// is NULL.
    pub(crate) fn beginning(&self, values: &[ArrayRef], row: usize) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let mut has_null = false;
        for (part, value) in self.parts.iter().zip(values) {
            has_null |= part.write(Reader::new(value).value(row).as_deref(), &mut bytes);
        }
        (bytes, has_null)
    }

    /// The beginnings that keys share whose first parts have the values of a row, for some rows.
    pub(crate) fn beginnings(&self, values: &[ArrayRef]) -> EncodedKeys {
        let rows = values.first().map_or(0, |values| values.len());
        let readers: Vec<Reader<'_>> = values.iter().map(Reader::new).collect();
        let mut keys = EncodedKeys::default();
        for row in 0..rows {
            let mut has_null = false;
            for (part, reader) in self.parts.iter().zip(&readers) {
                has_null |= part.write(reader.value(row).as_deref(), &mut keys.bytes);
            }
            keys.ends.push(keys.bytes.len());
            keys.with_null.push(has_null);
        }
        keys.sort();
        keys
    }

    /// How many parts the key has.
    pub(crate) fn part_count(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn is_unique(&self) -> bool {
        self.is_unique
    }

    /// Whether a part is kept in full.
    pub(crate) fn is_whole(&self, part: usize) -> bool {
        self.parts[part].prefix.is_none()
    }

    pub(crate) fn is_descending(&self, part: usize) -> bool {
        self.parts[part].is_descending
    }

    /// What stands in front of a value that is not NULL in this part.
    pub(crate) fn value_mark(&self, part: usize) -> Option<u8> {
        let part = &self.parts[part];
        part.is_nullable.then_some(match part.is_descending {
            true => !VALUE,
            false => VALUE,
        })
    }
}

impl Part {
    /// Writes the value of a row; whether it is NULL.
    fn write(&self, value: Option<&[u8]>, bytes: &mut Vec<u8>) -> bool {
        let start = bytes.len();
        if self.is_nullable {
            bytes.push(if value.is_none() { NULL } else { VALUE });
        }
        match (self.kind, value) {
            (_, None) => {}
            (Kind::Text | Kind::Bytes, Some(value)) => {
                let value = match self.prefix {
                    Some(prefix) if self.kind == Kind::Text => first_characters(value, prefix),
                    Some(prefix) => &value[..prefix.min(value.len())],
                    None => value,
                };
                byte_string::write(value, bytes);
            }
            (kind, Some(value)) => write_number(kind, value, bytes),
        }
        if self.is_descending {
            for byte in &mut bytes[start..] {
                *byte = !*byte;
            }
        }
        value.is_none()
    }
}

impl Kind {
    fn of(data_type: &DataType) -> Kind {
        match data_type {
            DataType::Utf8View => Kind::Text,
            DataType::BinaryView => Kind::Bytes,
            DataType::Float32 | DataType::Float64 => Kind::Float,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Kind::Unsigned
            }
            _ => Kind::Signed,
        }
    }
}

/// The values of a column, by row.
pub(crate) trait Values {
    /// The little-endian bytes of a number, or those of a text; `None` for NULL.
    fn value(&self, row: usize) -> Option<StoredValue<'_>>;
}

impl Values for StoredColumn<'_> {
    fn value(&self, row: usize) -> Option<StoredValue<'_>> {
        StoredColumn::value(self, row)
    }
}

/// The values of an array.
pub(crate) struct Reader<'a> {
    array: &'a ArrayRef,
    /// Values of a fixed width, and that width.
    fixed: Option<(arrow_data::ArrayData, usize)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(array: &'a ArrayRef) -> Self {
        let width = array.data_type().primitive_width();
        Self {
            array,
            fixed: width.map(|width| (array.to_data(), width)),
        }
    }
}

impl Values for Reader<'_> {
    fn value(&self, row: usize) -> Option<StoredValue<'_>> {
        if self.array.data_type() == &DataType::Null || self.array.is_null(row) {
            return None;
        }
        if let Some((data, width)) = &self.fixed {
            let start = (data.offset() + row) * width;
            let bytes = &data.buffers()[0].as_slice()[start..start + width];
            return Some(StoredValue::There(bytes));
        }
        Some(StoredValue::There(match self.array.data_type() {
            DataType::Utf8View => self.array.as_string_view().value(row).as_bytes(),
            DataType::BinaryView => self.array.as_binary_view().value(row),
            DataType::Utf8 => self.array.as_string::<i32>().value(row).as_bytes(),
            DataType::LargeUtf8 => self.array.as_string::<i64>().value(row).as_bytes(),
            DataType::Binary => self.array.as_binary::<i32>().value(row),
            DataType::LargeBinary => self.array.as_binary::<i64>().value(row),
            _ => &[],
        }))
    }
}

/// A little-endian number, so that bytes compare as numbers do.
fn write_number(kind: Kind, little: &[u8], bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend(little.iter().rev());
    let written = &mut bytes[start..];
    let Some(first) = written.first().copied() else {
        return;
    };
    const SIGN: u8 = 0x80;
    match kind {
        Kind::Unsigned | Kind::Text | Kind::Bytes => {}
        Kind::Signed => written[0] ^= SIGN,
        Kind::Float => {
            let is_zero = first & !SIGN == 0 && written[1..].iter().all(|byte| *byte == 0);
            if is_zero || first & SIGN == 0 {
                written[0] = (first & !SIGN) | SIGN;
            } else {
                for byte in written {
                    *byte = !*byte;
                }
            }
        }
    }
}

/// The first characters of a UTF-8 text.
fn first_characters(text: &[u8], count: usize) -> &[u8] {
    if text.len() <= count {
        return text;
    }
    let starts = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte & 0xc0 != 0x80);
    match starts.map(|(at, _)| at).nth(count) {
        Some(end) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int64Array, StringViewArray};
    use mayfly_types::ColumnType;

    use super::*;
    use crate::definition::{KeyKind, KeyPart};

    fn encoder(column_type: ColumnType, prefix: Option<u32>, is_descending: bool) -> KeyEncoder {
        let part = KeyPart {
            prefix,
            is_descending,
            ..KeyPart::new(0)
        };
        let key = Key::new("k", KeyKind::Unique, vec![part]);
        KeyEncoder::new(&key, &[Column::new("c", column_type, true)])
    }

    fn keys(encoder: &KeyEncoder, values: ArrayRef) -> Vec<Vec<u8>> {
        let rows = values.len();
        (0..rows)
            .map(|row| encoder.beginning(std::slice::from_ref(&values), row).0)
            .collect()
    }

    #[test]
    fn numbers_keep_their_order() {
        let values = [
            None,
            Some(i64::MIN),
            Some(-1),
            Some(0),
            Some(7),
            Some(i64::MAX),
        ];
        let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        let ascending = encoder(ColumnType::BigInt { unsigned: false }, None, false);
        assert!(keys(&ascending, Arc::clone(&values)).is_sorted());
        let descending = encoder(ColumnType::BigInt { unsigned: false }, None, true);
        assert!(keys(&descending, values).iter().rev().is_sorted());
    }

    #[test]
    fn floats_keep_their_order_and_zero_is_one() {
        let values = vec![f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-9, 2.0, f64::INFINITY];
        let values: ArrayRef = Arc::new(Float64Array::from(values));
        let keys = keys(&encoder(ColumnType::DOUBLE, None, false), values);
        assert!(keys.is_sorted());
        assert_eq!(keys[2], keys[3]);
    }

    #[test]
    fn texts_keep_their_order_and_end() {
        let values = vec!["", "\0", "\0\0", "\0a", "a", "a\0", "ab", "b"];
        let values: ArrayRef = Arc::new(StringViewArray::from(values));
        let keys = keys(
            &encoder(ColumnType::VarChar { length: 9 }, None, false),
            values,
        );
        assert!(keys.is_sorted());
        for (index, key) in keys.iter().enumerate() {
            let others = keys.iter().enumerate().filter(|(other, _)| *other != index);
            assert!(others.into_iter().all(|(_, other)| !other.starts_with(key)));
        }
    }

    #[test]
    fn a_prefix_counts_characters() {
        assert_eq!(
            first_characters("\u{e4}\u{f6}\u{fc}".as_bytes(), 2),
            "\u{e4}\u{f6}".as_bytes()
        );
        assert_eq!(
            first_characters("\u{e4}\u{f6}".as_bytes(), 3),
            "\u{e4}\u{f6}".as_bytes()
        );
        assert_eq!(first_characters(b"abc", 0), b"");
        let values: ArrayRef = Arc::new(StringViewArray::from(vec![
            "\u{e4}\u{f6}x",
            "\u{e4}\u{f6}y",
        ]));
        let keys = keys(
            &encoder(ColumnType::VarChar { length: 9 }, Some(2), false),
            values,
        );
        assert_eq!(keys[0], keys[1]);
    }
}
