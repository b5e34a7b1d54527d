//! Keys as values again.
//!
//! **Owns** which parts of a key say what their column holds: those kept in full, of types whose
//! bytes are the value. A floating point part is none: `-0` and `0` are one key.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayDataBuilder;

use super::byte_string;
use super::encoder::{KeyEncoder, Kind, NULL, Part};
use crate::error::{Error, Result};

const CORRUPT: Error = Error::CorruptPage {
    what: "a key that its columns did not make",
};

impl KeyEncoder {
    /// Whether the values of a part can be read off its keys.
    pub(crate) fn is_covering(&self, part: usize) -> bool {
        let part = &self.parts[part];
        let is_exact = match part.kind {
            Kind::Text | Kind::Bytes => true,
            Kind::Signed | Kind::Unsigned => part.data_type.primitive_width().is_some(),
            Kind::Float => false,
        };
        is_exact && part.prefix.is_none()
    }

    /// How many bytes of a key its first parts take.
    pub(crate) fn length_of(&self, key: &[u8], parts: usize) -> usize {
        let mut at = 0;
        for part in &self.parts[..parts] {
            at += part.length_of(&key[at..]);
        }
        at.min(key.len())
    }
}

impl Part {
    /// The byte as it was before a descending part turned it.
    fn plain(&self, byte: u8) -> u8 {
        if self.is_descending { !byte } else { byte }
    }

    /// The bytes of the part at the beginning of a key.
    fn length_of(&self, key: &[u8]) -> usize {
        let mark = usize::from(self.is_nullable);
        if self.is_nullable && key.first().is_none_or(|mark| self.plain(*mark) == NULL) {
            return mark;
        }
        match self.kind {
            Kind::Text | Kind::Bytes => {
                mark + byte_string::encoded_len(&key[mark..], |byte| self.plain(byte))
            }
            _ => mark + self.data_type.primitive_width().unwrap_or(0),
        }
    }
}

/// Reads values off keys, one column for each part that is asked for.
pub(crate) struct KeyDecoder<'e> {
    encoder: &'e KeyEncoder,
    /// For each part, whether its values are kept.
    columns: Vec<Option<Values>>,
    value: Vec<u8>,
}

/// The values of one part.
enum Values {
    Fixed { bytes: Vec<u8>, is_valid: Vec<bool> },
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
}

impl<'e> KeyDecoder<'e> {
    /// A decoder of some parts, all of which are covering.
    pub(crate) fn new(encoder: &'e KeyEncoder, parts: &[usize]) -> Self {
        let mut columns: Vec<Option<Values>> = Vec::new();
        columns.resize_with(encoder.part_count(), || None);
        for part in parts {
            columns[*part] = Some(match encoder.parts[*part].kind {
                Kind::Text => Values::Text(StringViewBuilder::new()),
                Kind::Bytes => Values::Bytes(BinaryViewBuilder::new()),
                _ => Values::Fixed {
                    bytes: Vec::new(),
                    is_valid: Vec::new(),
                },
            });
        }
        Self {
            encoder,
            columns,
            value: Vec::new(),
        }
    }

    /// Adds the values of a key.
    pub(crate) fn push(&mut self, key: &[u8]) -> Result<()> {
        let mut at = 0;
        for (part, values) in self.encoder.parts.iter().zip(&mut self.columns) {
            let length = part.length_of(&key[at..]);
            let bytes = key.get(at..at + length).ok_or(CORRUPT)?;
            at += length;
            if let Some(values) = values {
                part.read(bytes, &mut self.value, values)?;
            }
        }
        Ok(())
    }

    /// The columns, in the order of `parts`.
    pub(crate) fn finish(mut self, parts: &[usize]) -> Result<Vec<ArrayRef>> {
        let mut read = Vec::with_capacity(parts.len());
        for part in parts {
            let data_type = &self.encoder.parts[*part].data_type;
            read.push(match self.columns[*part].take().ok_or(CORRUPT)? {
                Values::Text(mut texts) => Arc::new(texts.finish()) as ArrayRef,
                Values::Bytes(mut bytes) => Arc::new(bytes.finish()),
                Values::Fixed { bytes, is_valid } => make_array(
                    ArrayDataBuilder::new(data_type.clone())
                        .len(is_valid.len())
                        .add_buffer(Buffer::from_vec(bytes))
                        .nulls(Some(NullBuffer::from(is_valid)).filter(|n| n.null_count() > 0))
                        .align_buffers(true)
                        .build()?,
                ),
            });
        }
        Ok(read)
    }
}

impl Part {
    /// Adds the value that these bytes of a key stand for.
    fn read(&self, key: &[u8], value: &mut Vec<u8>, values: &mut Values) -> Result<()> {
        value.clear();
        let (mark, rest) = key.split_at(usize::from(self.is_nullable).min(key.len()));
        let is_null = mark.first().is_some_and(|mark| self.plain(*mark) == NULL);
        match values {
            Values::Fixed { bytes, is_valid } => {
                let width = self.data_type.primitive_width().unwrap_or(0);
                is_valid.push(!is_null);
                if is_null {
                    bytes.resize(bytes.len() + width, 0);
                    return Ok(());
                }
                let big: &[u8] = rest.get(..width).ok_or(CORRUPT)?;
                bytes.extend(big.iter().rev().map(|byte| self.plain(*byte)));
                if let (Kind::Signed, Some(sign)) = (self.kind, bytes.last_mut()) {
                    *sign ^= 0x80;
                }
            }
            Values::Text(texts) if is_null => texts.append_null(),
            Values::Bytes(bytes) if is_null => bytes.append_null(),
            Values::Text(texts) => {
                byte_string::read(rest, |byte| self.plain(byte), value);
                texts.append_value(std::str::from_utf8(value).map_err(|_| CORRUPT)?);
            }
            Values::Bytes(bytes) => {
                byte_string::read(rest, |byte| self.plain(byte), value);
                bytes.append_value(value);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal128Array, Int64Array, StringViewArray, UInt64Array};
    use mayfly_types::ColumnType;

    use super::*;
    use crate::definition::{Column, Key, KeyKind, KeyPart};
    use crate::keys::EncodedKeys;
    use crate::keys::encoder::Reader;

    #[test]
    fn keys_give_their_values_back() {
        let text = ColumnType::VarChar { length: 9 };
        let number = ColumnType::BigInt { unsigned: false };
        let decimal = ColumnType::Decimal {
            precision: 20,
            scale: 2,
            unsigned: false,
        };
        let columns: Vec<Column> = [number, text, decimal]
            .into_iter()
            .map(|of_type| Column::new("c", of_type, true))
            .collect();
        let numbers = Int64Array::from(vec![None, Some(i64::MIN), Some(-1), Some(0), Some(7)]);
        let texts = vec![Some("a\0b"), None, Some(""), Some("\0"), Some("\u{e4}\0\0")];
        let decimals = [Some(-5_i128), Some(0), None, Some(1 << 60), Some(99)];
        let decimals = Decimal128Array::from(decimals.to_vec());
        let values: Vec<ArrayRef> = vec![
            Arc::new(numbers),
            Arc::new(StringViewArray::from(texts)),
            Arc::new(decimals.with_precision_and_scale(20, 2).unwrap()),
        ];
        let rows = UInt64Array::from(vec![1, 2, 3, 4, 5]);
        for descending in 0..8 {
            let part = |column: usize| KeyPart {
                is_descending: descending & (1 << column) != 0,
                ..KeyPart::new(column)
            };
            let key = Key::new("k", KeyKind::Plain, (0..3).map(part).collect());
            let encoder = KeyEncoder::new(&key, &columns);
            assert!((0..3).all(|part| encoder.is_covering(part)));
            let readers: Vec<Reader<'_>> = values.iter().map(Reader::new).collect();
            let mut keys = EncodedKeys::default();
            encoder.encode(&readers, 0..rows.len(), |row| rows.value(row), &mut keys);
            let parts = [2, 0, 1];
            let mut decoder = KeyDecoder::new(&encoder, &parts);
            for row in 0..keys.len() {
                decoder.push(keys.key(row)).unwrap();
                let whole = encoder.length_of(keys.key(row), 3);
                assert_eq!(whole + 8, keys.key(row).len());
            }
            let read = decoder.finish(&parts).unwrap();
            for (part, read) in parts.iter().zip(read) {
                assert_eq!(&read, &values[*part], "descending {descending:b}");
            }
        }
    }
}
