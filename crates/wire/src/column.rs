//! Columns as a client is told of them: the packet `Protocol::ColumnDefinition41`.
//!
//! **Source**: "Column Definition Protocol"; `Field::type()`, `field_length` and `decimals` by type
//! in `sql/field.cc`, `Item::init_make_field` for expressions. Compared with what MariaDB sends.

use std::sync::Arc;

use bytes::BytesMut;
use mayfly_types::{BlobSize, ColumnType};

use crate::bytes_out::{put_bytes, put_u8, put_u16, put_u32};
use crate::encoding::TextEncoding;
use crate::flags::ColumnFlags;

/// The collation of numbers, times and bytes: `binary`.
pub const BINARY_COLLATION_ID: u16 = 63;
/// `utf8mb4_0900_ai_ci`, which MySQL 8 names for texts in utf8mb4.
pub const UTF8MB4_COLLATION_ID: u16 = 255;
/// Decimals of a floating-point number that shows as many as it has: `DECIMAL_NOT_SPECIFIED`.
const ALL_DECIMALS: u8 = 31;

/// The types of the protocol: `enum_field_types` of MySQL's `field_types.h`.
pub(crate) mod wire_type {
    pub(crate) const DECIMAL: u8 = 0;
    pub(crate) const TINY: u8 = 1;
    pub(crate) const SHORT: u8 = 2;
    pub(crate) const LONG: u8 = 3;
    pub(crate) const FLOAT: u8 = 4;
    pub(crate) const DOUBLE: u8 = 5;
    pub(crate) const NULL: u8 = 6;
    pub(crate) const TIMESTAMP: u8 = 7;
    pub(crate) const LONGLONG: u8 = 8;
    pub(crate) const INT24: u8 = 9;
    pub(crate) const DATE: u8 = 10;
    pub(crate) const TIME: u8 = 11;
    pub(crate) const DATETIME: u8 = 12;
    pub(crate) const YEAR: u8 = 13;
    pub(crate) const NEWDATE: u8 = 14;
    pub(crate) const BIT: u8 = 16;
    pub(crate) const JSON: u8 = 245;
    pub(crate) const NEWDECIMAL: u8 = 246;
    pub(crate) const TINY_BLOB: u8 = 249;
    pub(crate) const MEDIUM_BLOB: u8 = 250;
    pub(crate) const LONG_BLOB: u8 = 251;
    pub(crate) const BLOB: u8 = 252;
    pub(crate) const VAR_STRING: u8 = 253;
    pub(crate) const STRING: u8 = 254;
    pub(crate) const GEOMETRY: u8 = 255;
}

/// One column of a result, or one parameter of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// The label: alias, or the text of the expression.
    pub name: String,
    /// The MySQL type. It rules how values are written; the Arrow type of a batch must hold it.
    pub column_type: ColumnType,
    /// Whether NULL can occur.
    pub nullable: bool,
    /// The name in its table; empty for an expression.
    pub original_name: Arc<str>,
    /// The alias of its table in the statement; empty for an expression.
    pub table: Arc<str>,
    /// The name of its table; empty for an expression.
    pub original_table: Arc<str>,
    /// The database of its table; empty for an expression.
    pub schema: Arc<str>,
    /// Flags that the type does not imply: keys, AUTO_INCREMENT, defaults.
    pub flags: ColumnFlags,
    /// Number of the collation, for columns of text; others are sent as binary. Clients read it
    /// only where nothing is converted, else that of what they read: [`TextEncoding`].
    pub collation_id: u16,
    /// What COM_FIELD_LIST shows as the default: `Some(None)` for NULL. `None` elsewhere.
    pub default_value: Option<Option<String>>,
}

impl ColumnDefinition {
    /// A column that comes from no table.
    pub fn new(name: impl Into<String>, column_type: ColumnType, nullable: bool) -> Self {
        ColumnDefinition {
            name: name.into(),
            column_type,
            nullable,
            original_name: Arc::default(),
            table: Arc::default(),
            original_table: Arc::default(),
            schema: Arc::default(),
            flags: ColumnFlags::empty(),
            collation_id: UTF8MB4_COLLATION_ID,
            default_value: None,
        }
    }

    /// A parameter of a prepared statement whose type is not known, as MySQL describes it.
    pub fn parameter() -> Self {
        ColumnDefinition {
            collation_id: BINARY_COLLATION_ID,
            ..ColumnDefinition::new("?", ColumnType::VarBinary { length: 0 }, true)
        }
    }

    /// Bytes of its texts, as they are here.
    pub(crate) fn text_bytes(&self) -> usize {
        let default_value = self.default_value.as_ref().and_then(Option::as_ref);
        [
            self.schema.len(),
            self.table.len(),
            self.original_table.len(),
            self.name.len(),
            self.original_name.len(),
            default_value.map_or(0, String::len),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// Appends the payload of the packet.
    pub(crate) fn write(&self, out: &mut BytesMut, encoding: TextEncoding) {
        let mut facts = Facts::of(&self.column_type, self.collation_id, encoding);
        // Numbers of a table are not compared by their bytes; those of an expression have a
        // collation, which is binary.
        if self.original_table.is_empty() && self.column_type.is_numeric() {
            facts.flags = facts.flags | ColumnFlags::BINARY;
        }
        if self.original_table.is_empty() {
            // As long as they can be, and not as a table shows them.
            facts.length_bytes = match self.column_type {
                ColumnType::BigInt { .. } => 21,
                ColumnType::Double { digits: None, .. } => 23,
                _ => facts.length_bytes,
            };
        }
        let is_of_none = self.table.is_empty() && self.original_table.is_empty();
        if is_of_none && self.column_type.is_text() {
            facts.decimals = ALL_DECIMALS;
        }
        put_bytes(out, b"def");
        put_bytes(out, &encoding.encode(self.schema.as_bytes()));
        put_bytes(out, &encoding.encode(self.table.as_bytes()));
        put_bytes(out, &encoding.encode(self.original_table.as_bytes()));
        put_bytes(out, &encoding.encode(self.name.as_bytes()));
        put_bytes(out, &encoding.encode(self.original_name.as_bytes()));
        put_u8(out, 12);
        put_u16(out, facts.collation_id);
        put_u32(out, facts.length_bytes);
        put_u8(out, facts.wire_type);
        let not_null = match self.nullable {
            true => ColumnFlags::empty(),
            false => ColumnFlags::NOT_NULL,
        };
        put_u16(out, (facts.flags | not_null | self.flags).bits());
        put_u8(out, facts.decimals);
        put_u16(out, 0);
        match &self.default_value {
            None => {}
            Some(None) => put_u8(out, 0xFB),
            Some(Some(text)) => put_bytes(out, &encoding.encode(text.as_bytes())),
        }
    }
}

/// What the type of a column implies for its packet.
struct Facts {
    wire_type: u8,
    length_bytes: u32,
    decimals: u8,
    collation_id: u16,
    flags: ColumnFlags,
}

impl Facts {
    fn of(column_type: &ColumnType, collation_id: u16, encoding: TextEncoding) -> Facts {
        let collation_id = encoding.told_collation(collation_id);
        let text = |wire_type: u8, characters: u32, flags: ColumnFlags| Facts {
            collation_id,
            ..Facts::plain(
                wire_type,
                characters.saturating_mul(encoding.character_bytes()),
                0,
                flags,
            )
        };
        let number = |wire_type: u8, signed_length: u32, unsigned: bool, unsigned_length: u32| {
            let sign = match unsigned {
                true => ColumnFlags::UNSIGNED,
                false => ColumnFlags::empty(),
            };
            let length_bytes = if unsigned {
                unsigned_length
            } else {
                signed_length
            };
            Facts::plain(wire_type, length_bytes, 0, sign)
        };
        match column_type {
            ColumnType::Bool => number(wire_type::TINY, 1, false, 1),
            ColumnType::TinyInt { unsigned } => number(wire_type::TINY, 4, *unsigned, 3),
            ColumnType::SmallInt { unsigned } => number(wire_type::SHORT, 6, *unsigned, 5),
            ColumnType::MediumInt { unsigned } => number(wire_type::INT24, 9, *unsigned, 8),
            ColumnType::Int { unsigned } => number(wire_type::LONG, 11, *unsigned, 10),
            ColumnType::BigInt { unsigned } => number(wire_type::LONGLONG, 20, *unsigned, 20),
            ColumnType::Decimal {
                precision,
                scale,
                unsigned,
            } => {
                let digits = u32::from(*precision).saturating_add(u32::from(*scale > 0));
                let mut facts = number(
                    wire_type::NEWDECIMAL,
                    digits.saturating_add(1),
                    *unsigned,
                    digits,
                );
                facts.decimals = *scale;
                facts
            }
            ColumnType::Float { unsigned, digits } => {
                let length = digits.map_or(12, |digits| u32::from(digits.total));
                let mut facts = number(wire_type::FLOAT, length, *unsigned, length);
                facts.decimals = digits.map_or(ALL_DECIMALS, |digits| digits.fraction);
                facts
            }
            ColumnType::Double { unsigned, digits } => {
                let length = digits.map_or(22, |digits| u32::from(digits.total));
                let mut facts = number(wire_type::DOUBLE, length, *unsigned, length);
                facts.decimals = digits.map_or(ALL_DECIMALS, |digits| digits.fraction);
                facts
            }
            ColumnType::Bit { length } => {
                Facts::plain(wire_type::BIT, u32::from(*length), 0, ColumnFlags::UNSIGNED)
            }
            ColumnType::Year => {
                let flags = ColumnFlags::UNSIGNED | ColumnFlags::ZEROFILL;
                Facts::plain(wire_type::YEAR, 4, 0, flags)
            }
            ColumnType::Date => Facts::plain(wire_type::DATE, 10, 0, ColumnFlags::BINARY),
            ColumnType::Time { digits } => Facts::moment(wire_type::TIME, 10, *digits),
            ColumnType::DateTime { digits } => Facts::moment(wire_type::DATETIME, 19, *digits),
            ColumnType::Timestamp { digits } => Facts::moment(wire_type::TIMESTAMP, 19, *digits),
            ColumnType::Null => Facts::plain(wire_type::NULL, 0, 0, ColumnFlags::BINARY),
            ColumnType::Char { length } => text(wire_type::STRING, *length, ColumnFlags::empty()),
            ColumnType::VarChar { length } => {
                text(wire_type::VAR_STRING, *length, ColumnFlags::empty())
            }
            ColumnType::Enum(words) => {
                let length = words.iter().map(|word| count(word)).max().unwrap_or(0);
                text(wire_type::STRING, length, ColumnFlags::ENUM)
            }
            ColumnType::Set(words) => {
                let commas = u32::try_from(words.len().saturating_sub(1)).unwrap_or(u32::MAX);
                let length = words
                    .iter()
                    .fold(commas, |sum, word| sum.saturating_add(count(word)));
                text(wire_type::STRING, length, ColumnFlags::SET)
            }
            ColumnType::Text(size) => Facts {
                collation_id,
                length_bytes: text_bytes(*size, encoding),
                ..Facts::plain(wire_type::BLOB, 0, 0, ColumnFlags::BLOB)
            },
            ColumnType::Binary { length } => {
                Facts::plain(wire_type::STRING, *length, 0, ColumnFlags::BINARY)
            }
            ColumnType::VarBinary { length } => {
                Facts::plain(wire_type::VAR_STRING, *length, 0, ColumnFlags::BINARY)
            }
            ColumnType::Blob(size) => {
                let flags = ColumnFlags::BLOB | ColumnFlags::BINARY;
                Facts::plain(
                    wire_type::BLOB,
                    u32::try_from(size.max_bytes()).unwrap_or(u32::MAX),
                    0,
                    flags,
                )
            }
            ColumnType::Json => {
                let flags = ColumnFlags::BLOB | ColumnFlags::BINARY;
                Facts::plain(wire_type::JSON, u32::MAX, 0, flags)
            }
        }
    }

    fn plain(wire_type: u8, length_bytes: u32, decimals: u8, flags: ColumnFlags) -> Facts {
        Facts {
            wire_type,
            length_bytes,
            decimals,
            collation_id: BINARY_COLLATION_ID,
            flags,
        }
    }

    fn moment(wire_type: u8, length_bytes: u32, digits: u8) -> Facts {
        let fraction = if digits > 0 { u32::from(digits) + 1 } else { 0 };
        let length_bytes = length_bytes.saturating_add(fraction);
        Facts::plain(wire_type, length_bytes, digits, ColumnFlags::BINARY)
    }
}

fn count(word: &str) -> u32 {
    u32::try_from(word.chars().count()).unwrap_or(u32::MAX)
}

/// The length of a TEXT: the bytes that it may have, times the bytes of a character, as MySQL does.
fn text_bytes(size: BlobSize, encoding: TextEncoding) -> u32 {
    u32::try_from(size.max_bytes())
        .unwrap_or(u32::MAX)
        .saturating_mul(encoding.byte_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes_in::Reader;
    use mayfly_types::CharacterSet;

    /// Type, length, decimals, collation and flags of the packet of a table's column.
    fn facts(declared: &str, encoding: TextEncoding) -> (u8, u32, u8, u16, u16) {
        let column = ColumnDefinition {
            original_table: "t".into(),
            ..ColumnDefinition::new("c", declared.parse().expect(declared), true)
        };
        let mut packet = BytesMut::new();
        column.write(&mut packet, encoding);
        let mut reader = Reader::new(&packet);
        for _ in 0..6 {
            reader.counted().expect("a name");
        }
        assert_eq!(reader.u8(), Ok(12));
        let collation_id = reader.u16().expect("a collation");
        let length = reader.u32().expect("a length");
        let wire_type = reader.u8().expect("a type");
        let flags = reader.u16().expect("flags");
        let decimals = reader.u8().expect("decimals");
        assert_eq!(reader.rest(), [0, 0]);
        (wire_type, length, decimals, collation_id, flags)
    }

    /// What MariaDB 10.11 sends for the columns of a table; collations and JSON as MySQL's.
    #[test]
    fn types_are_described_as_servers_do() {
        for (declared, expected) in [
            ("tinyint(1)", (1, 1, 0, 63, 0)),
            ("tinyint", (1, 4, 0, 63, 0)),
            ("tinyint unsigned", (1, 3, 0, 63, 32)),
            ("smallint", (2, 6, 0, 63, 0)),
            ("smallint unsigned", (2, 5, 0, 63, 32)),
            ("mediumint", (9, 9, 0, 63, 0)),
            ("mediumint unsigned", (9, 8, 0, 63, 32)),
            ("int", (3, 11, 0, 63, 0)),
            ("int unsigned", (3, 10, 0, 63, 32)),
            ("bigint", (8, 20, 0, 63, 0)),
            ("bigint unsigned", (8, 20, 0, 63, 32)),
            ("decimal(10,2)", (246, 12, 2, 63, 0)),
            ("decimal(20,0)", (246, 21, 0, 63, 0)),
            ("decimal(50,4)", (246, 52, 4, 63, 0)),
            ("float", (4, 12, 31, 63, 0)),
            ("float(7,3)", (4, 7, 3, 63, 0)),
            ("double", (5, 22, 31, 63, 0)),
            ("double(10,2)", (5, 10, 2, 63, 0)),
            ("bit(12)", (16, 12, 0, 63, 32)),
            ("year", (13, 4, 0, 63, 96)),
            ("date", (10, 10, 0, 63, 128)),
            ("datetime", (12, 19, 0, 63, 128)),
            ("datetime(6)", (12, 26, 6, 63, 128)),
            ("timestamp(3)", (7, 23, 3, 63, 128)),
            ("time", (11, 10, 0, 63, 128)),
            ("time(2)", (11, 13, 2, 63, 128)),
            ("char(5)", (254, 20, 0, 255, 0)),
            ("varchar(40)", (253, 160, 0, 255, 0)),
            ("tinytext", (252, 1020, 0, 255, 16)),
            ("text", (252, 262_140, 0, 255, 16)),
            ("longtext", (252, u32::MAX, 0, 255, 16)),
            ("binary(3)", (254, 3, 0, 63, 128)),
            ("varbinary(3)", (253, 3, 0, 63, 128)),
            ("mediumblob", (252, 16_777_215, 0, 63, 144)),
            ("json", (245, u32::MAX, 0, 63, 144)),
            ("enum('red','green')", (254, 20, 0, 255, 256)),
            ("set('a','b','c')", (254, 20, 0, 255, 2048)),
        ] {
            let encoding = TextEncoding::default();
            assert_eq!(facts(declared, encoding), expected, "{declared}");
        }
    }

    /// What MariaDB 11.8 sends after SET NAMES; utf8mb4 columns where nothing is converted.
    #[test]
    fn texts_are_described_in_the_set_of_results() {
        let binary = TextEncoding::of(CharacterSet::Binary);
        let latin1 = TextEncoding::with_collation(CharacterSet::Latin1, 47);
        let utf8mb3 = TextEncoding::of(CharacterSet::Utf8mb3);
        for (encoding, collation_id, lengths) in [
            (latin1, 47, [10, 255, 65_535, u32::MAX, 2]),
            (binary, 63, [10, 255, 65_535, u32::MAX, 2]),
            (utf8mb3, 33, [30, 765, 196_605, u32::MAX, 6]),
            (
                TextEncoding::UNCONVERTED,
                255,
                [40, 255, 65_535, u32::MAX, 8],
            ),
        ] {
            let declared = [
                "varchar(10)",
                "tinytext",
                "text",
                "longtext",
                "enum('a','b\u{20AC}')",
            ];
            for (declared, length) in declared.into_iter().zip(lengths) {
                let (_, told_length, _, told_id, _) = facts(declared, encoding);
                assert_eq!((told_length, told_id), (length, collation_id), "{declared}");
            }
            assert_eq!(facts("int", encoding), (3, 11, 0, 63, 0));
            assert_eq!(facts("varbinary(3)", encoding), (253, 3, 0, 63, 128));
        }
    }
}
