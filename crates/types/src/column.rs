//! MySQL column types and the Arrow fields that hold them.
//!
//! The Arrow type alone does not tell MEDIUMINT from INT or DATETIME(3) from DATETIME(6), so
//! every field carries the MySQL type as text under [`TYPE_KEY`]. A field without it (a file's
//! column) gets the MySQL type that its Arrow type comes closest to.

use std::collections::HashMap;
use std::fmt;

use arrow_schema::{DataType, Field, TimeUnit};

use crate::Collation;

/// The metadata key of a field that holds the MySQL type, written as SHOW CREATE TABLE does.
pub const TYPE_KEY: &str = "mysql.type";
/// The metadata key of a field that holds the name of its collation.
pub const COLLATION_KEY: &str = "mysql.collation";
/// The most columns of a table, and of a select list.
pub const COLUMNS_MAX: usize = 4096;

/// The digits of DECIMAL that fit Arrow's 128-bit decimal.
const DECIMAL128_DIGITS: u8 = 38;
/// The digits before the point that a DOUBLE is declared with when a result becomes a column.
const DOUBLE_DIGITS: u8 = 17;
/// The most digits that MySQL's DECIMAL has.
const DECIMAL_DIGITS: u8 = 65;

/// The size classes of TEXT and BLOB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlobSize {
    /// Up to 255 bytes.
    Tiny,
    /// Up to 65535 bytes.
    Normal,
    /// Up to 16 MiB less one byte.
    Medium,
    /// Up to 4 GiB less one byte.
    Long,
}

impl BlobSize {
    /// The smallest whose values may have so many bytes; the largest where none may.
    pub fn holding(bytes: u64) -> BlobSize {
        [BlobSize::Tiny, BlobSize::Normal, BlobSize::Medium]
            .into_iter()
            .find(|size| bytes <= size.max_bytes())
            .unwrap_or(BlobSize::Long)
    }

    /// The most bytes that a value may have.
    pub const fn max_bytes(self) -> u64 {
        match self {
            BlobSize::Tiny => (1 << 8) - 1,
            BlobSize::Normal => (1 << 16) - 1,
            BlobSize::Medium => (1 << 24) - 1,
            BlobSize::Long => (1 << 32) - 1,
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            BlobSize::Tiny => "tiny",
            BlobSize::Normal => "",
            BlobSize::Medium => "medium",
            BlobSize::Long => "long",
        }
    }
}

/// The digits of FLOAT(total, fraction) and DOUBLE(total, fraction).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digits {
    /// All of them.
    pub total: u8,
    /// Those behind the point, which are always shown.
    pub fraction: u8,
}

/// The type of a column as MySQL declares it.
///
/// `Display` prints it as SHOW CREATE TABLE does, [`str::parse`] reads that text and the other
/// spellings that MySQL takes (`INTEGER`, `NUMERIC(5)`, `DOUBLE PRECISION`, ...).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// BOOL, which is TINYINT(1).
    Bool,
    /// One byte.
    TinyInt {
        /// Whether it is UNSIGNED.
        unsigned: bool,
    },
    /// Two bytes.
    SmallInt {
        /// Whether it is UNSIGNED.
        unsigned: bool,
    },
    /// Three bytes, held in four.
    MediumInt {
        /// Whether it is UNSIGNED.
        unsigned: bool,
    },
    /// Four bytes.
    Int {
        /// Whether it is UNSIGNED.
        unsigned: bool,
    },
    /// Eight bytes.
    BigInt {
        /// Whether it is UNSIGNED.
        unsigned: bool,
    },
    /// Exact numbers of up to 65 digits.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
        /// Whether it is UNSIGNED.
        unsigned: bool,
    },
    /// Four-byte floating point.
    Float {
        /// Whether it is UNSIGNED.
        unsigned: bool,
        /// Where digits were declared.
        digits: Option<Digits>,
    },
    /// Eight-byte floating point.
    Double {
        /// Whether it is UNSIGNED.
        unsigned: bool,
        /// Where digits were declared.
        digits: Option<Digits>,
    },
    /// Bits, held as an unsigned number.
    Bit {
        /// Bits.
        length: u8,
    },
    /// Text of a declared length in characters, without trailing spaces.
    Char {
        /// Characters.
        length: u32,
    },
    /// Text of up to a declared length in characters.
    VarChar {
        /// Characters.
        length: u32,
    },
    /// Text of up to a size class.
    Text(BlobSize),
    /// Bytes of a declared length, padded with zeros.
    Binary {
        /// Bytes.
        length: u32,
    },
    /// Bytes of up to a declared length.
    VarBinary {
        /// Bytes.
        length: u32,
    },
    /// Bytes of up to a size class.
    Blob(BlobSize),
    /// A day.
    Date,
    /// A day and a time with that many digits of a second.
    DateTime {
        /// Digits of a second's fraction.
        digits: u8,
    },
    /// A moment with that many digits of a second.
    Timestamp {
        /// Digits of a second's fraction.
        digits: u8,
    },
    /// A signed duration of up to 838 hours with that many digits of a second.
    Time {
        /// Digits of a second's fraction.
        digits: u8,
    },
    /// A year.
    Year,
    /// A JSON document, held as text.
    Json,
    /// One of a list of words.
    Enum(Vec<String>),
    /// Some of a list of words.
    Set(Vec<String>),
    /// The type of a bare NULL.
    Null,
}

impl ColumnType {
    /// DOUBLE, with as many digits as a value has.
    pub const DOUBLE: ColumnType = ColumnType::Double {
        unsigned: false,
        digits: None,
    };

    /// The DOUBLE of a result that shows that many digits behind the point.
    pub fn double_with(fraction: u8) -> ColumnType {
        ColumnType::Double {
            unsigned: false,
            digits: Some(Digits {
                total: fraction.saturating_add(DOUBLE_DIGITS),
                fraction,
            }),
        }
    }

    /// The digits behind the point that a floating-point number always shows; `None` when it
    /// shows as many as it has, and for other types.
    pub fn shown_digits(&self) -> Option<u8> {
        match self {
            ColumnType::Float { digits, .. } | ColumnType::Double { digits, .. } => {
                digits.map(|digits| digits.fraction)
            }
            _ => None,
        }
    }

    /// The Arrow type that holds values of this type.
    pub fn data_type(&self) -> DataType {
        match self {
            ColumnType::Bool => DataType::Int8,
            ColumnType::TinyInt { unsigned: false } => DataType::Int8,
            ColumnType::TinyInt { unsigned: true } => DataType::UInt8,
            ColumnType::SmallInt { unsigned: false } => DataType::Int16,
            ColumnType::SmallInt { unsigned: true } => DataType::UInt16,
            ColumnType::MediumInt { unsigned: false } | ColumnType::Int { unsigned: false } => {
                DataType::Int32
            }
            ColumnType::MediumInt { unsigned: true } | ColumnType::Int { unsigned: true } => {
                DataType::UInt32
            }
            ColumnType::BigInt { unsigned: false } => DataType::Int64,
            ColumnType::BigInt { unsigned: true } | ColumnType::Bit { .. } => DataType::UInt64,
            ColumnType::Decimal {
                precision, scale, ..
            } => {
                let scale = scale.cast_signed();
                if *precision <= DECIMAL128_DIGITS {
                    DataType::Decimal128(*precision, scale)
                } else {
                    DataType::Decimal256(*precision, scale)
                }
            }
            ColumnType::Float { .. } => DataType::Float32,
            ColumnType::Double { .. } => DataType::Float64,
            ColumnType::Char { .. }
            | ColumnType::VarChar { .. }
            | ColumnType::Text(_)
            | ColumnType::Json
            | ColumnType::Enum(_)
            | ColumnType::Set(_) => DataType::Utf8View,
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob(_) => {
                DataType::BinaryView
            }
            ColumnType::Date => DataType::Date32,
            ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            }
            ColumnType::Time { .. } => DataType::Duration(TimeUnit::Microsecond),
            ColumnType::Year => DataType::UInt16,
            ColumnType::Null => DataType::Null,
        }
    }

    /// A field of this type, with the MySQL type and the collation in its metadata.
    pub fn to_arrow(&self, name: &str, nullable: bool) -> Field {
        let mut metadata = HashMap::from([(TYPE_KEY.to_owned(), self.to_string())]);
        if self.is_text() {
            metadata.insert(
                COLLATION_KEY.to_owned(),
                Collation::default().name().to_owned(),
            );
        }
        Field::new(name, self.data_type(), nullable).with_metadata(metadata)
    }

    /// The MySQL type of a field: what its metadata says, if that agrees with its Arrow type,
    /// otherwise the nearest type.
    pub fn from_arrow(field: &Field) -> Self {
        field
            .metadata()
            .get(TYPE_KEY)
            .and_then(|text| text.parse::<Self>().ok())
            .filter(|declared| declared.holds(field.data_type()))
            .unwrap_or_else(|| Self::from_data_type(field.data_type()))
    }

    /// The MySQL type nearest to an Arrow type.
    ///
    /// Arrow types without a counterpart (lists, structs, ...) are shown as JSON.
    pub fn from_data_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Null => ColumnType::Null,
            DataType::Boolean => ColumnType::Bool,
            DataType::Int8 => ColumnType::TinyInt { unsigned: false },
            DataType::Int16 => ColumnType::SmallInt { unsigned: false },
            DataType::Int32 => ColumnType::Int { unsigned: false },
            DataType::Int64 => ColumnType::BigInt { unsigned: false },
            DataType::UInt8 => ColumnType::TinyInt { unsigned: true },
            DataType::UInt16 => ColumnType::SmallInt { unsigned: true },
            DataType::UInt32 => ColumnType::Int { unsigned: true },
            DataType::UInt64 => ColumnType::BigInt { unsigned: true },
            DataType::Float16 | DataType::Float32 => ColumnType::Float {
                unsigned: false,
                digits: None,
            },
            DataType::Float64 => ColumnType::DOUBLE,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                let scale = scale.max(&0).cast_unsigned();
                let precision = (*precision).max(scale).clamp(1, DECIMAL_DIGITS);
                ColumnType::Decimal {
                    precision,
                    scale,
                    unsigned: false,
                }
            }
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => {
                ColumnType::Text(BlobSize::Long)
            }
            DataType::Binary
            | DataType::BinaryView
            | DataType::LargeBinary
            | DataType::FixedSizeBinary(_) => ColumnType::Blob(BlobSize::Long),
            DataType::Date32 | DataType::Date64 => ColumnType::Date,
            DataType::Timestamp(unit, zone) => {
                let digits = unit_digits(*unit);
                if zone.is_some() {
                    ColumnType::Timestamp { digits }
                } else {
                    ColumnType::DateTime { digits }
                }
            }
            DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => {
                ColumnType::Time {
                    digits: unit_digits(*unit),
                }
            }
            DataType::Dictionary(_, values) => Self::from_data_type(values),
            DataType::RunEndEncoded(_, values) => Self::from_data_type(values.data_type()),
            _ => ColumnType::Json,
        }
    }

    /// Whether a column of this type may have that Arrow type: its own, or another that holds
    /// the same values (a file's `Utf8` for TEXT, ...).
    fn holds(&self, data_type: &DataType) -> bool {
        let own = self.data_type();
        if own == *data_type {
            return true;
        }
        match (own, data_type) {
            (DataType::Int8, DataType::Boolean) => *self == ColumnType::Bool,
            (DataType::Utf8View, other) => {
                matches!(other, DataType::Utf8 | DataType::LargeUtf8)
            }
            (DataType::BinaryView, other) => {
                matches!(other, DataType::Binary | DataType::LargeBinary)
            }
            (DataType::Timestamp(_, None), DataType::Timestamp(_, _)) => true,
            (own, DataType::Dictionary(_, values)) => own == **values || self.holds(values),
            _ => false,
        }
    }

    /// Whether values are compared as text, by a collation.
    pub fn is_text(&self) -> bool {
        matches!(
            self,
            ColumnType::Char { .. }
                | ColumnType::VarChar { .. }
                | ColumnType::Text(_)
                | ColumnType::Enum(_)
                | ColumnType::Set(_)
        )
    }

    /// Whether values are words of a list.
    pub fn is_list(&self) -> bool {
        matches!(self, ColumnType::Enum(_) | ColumnType::Set(_))
    }

    /// Whether values are bytes without a character set.
    pub fn is_binary(&self) -> bool {
        matches!(
            self,
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob(_)
        )
    }

    /// Whether values are bytes where a text is wanted: BIT is a number everywhere else.
    pub fn is_binary_string(&self) -> bool {
        self.is_binary() || matches!(self, ColumnType::Bit { .. })
    }

    /// Whether values are numbers (YEAR and BIT included).
    pub fn is_numeric(&self) -> bool {
        matches!(
            self,
            ColumnType::Bool
                | ColumnType::TinyInt { .. }
                | ColumnType::SmallInt { .. }
                | ColumnType::MediumInt { .. }
                | ColumnType::Int { .. }
                | ColumnType::BigInt { .. }
                | ColumnType::Decimal { .. }
                | ColumnType::Float { .. }
                | ColumnType::Double { .. }
                | ColumnType::Bit { .. }
                | ColumnType::Year
        )
    }

    /// Whether it holds whole numbers without a sign.
    pub fn is_unsigned(&self) -> bool {
        matches!(
            self,
            ColumnType::TinyInt { unsigned: true }
                | ColumnType::SmallInt { unsigned: true }
                | ColumnType::MediumInt { unsigned: true }
                | ColumnType::Int { unsigned: true }
                | ColumnType::BigInt { unsigned: true }
        )
    }

    /// Whether values are whole numbers.
    pub fn is_integer(&self) -> bool {
        self.is_numeric()
            && !matches!(
                self,
                ColumnType::Decimal { .. } | ColumnType::Float { .. } | ColumnType::Double { .. }
            )
    }

    /// Whether values are days, times or both.
    pub fn is_temporal(&self) -> bool {
        matches!(
            self,
            ColumnType::Date
                | ColumnType::DateTime { .. }
                | ColumnType::Timestamp { .. }
                | ColumnType::Time { .. }
        )
    }

    /// The digits of a second that a time is written with: those of its type, all of them where it
    /// stands in a column of another type.
    pub fn written_second_digits(&self) -> u8 {
        match self {
            ColumnType::DateTime { .. }
            | ColumnType::Timestamp { .. }
            | ColumnType::Time { .. } => self.second_digits(),
            _ => 6,
        }
    }

    /// The digits of a second that values show; zero for types without a time.
    pub fn second_digits(&self) -> u8 {
        match self {
            ColumnType::DateTime { digits }
            | ColumnType::Timestamp { digits }
            | ColumnType::Time { digits } => *digits,
            _ => 0,
        }
    }
}

fn unit_digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |f: &mut fmt::Formatter<'_>, name: &str, unsigned: bool| {
            f.write_str(name)?;
            f.write_str(if unsigned { " unsigned" } else { "" })
        };
        let floating =
            |f: &mut fmt::Formatter<'_>, name: &str, digits: Option<Digits>, unsigned| match digits
            {
                None => number(f, name, unsigned),
                Some(Digits { total, fraction }) => {
                    number(f, &format!("{name}({total},{fraction})"), unsigned)
                }
            };
        let digits = |f: &mut fmt::Formatter<'_>, name: &str, digits: u8| {
            if digits == 0 {
                f.write_str(name)
            } else {
                write!(f, "{name}({digits})")
            }
        };
        match self {
            ColumnType::Bool => f.write_str("tinyint(1)"),
            ColumnType::TinyInt { unsigned } => number(f, "tinyint", *unsigned),
            ColumnType::SmallInt { unsigned } => number(f, "smallint", *unsigned),
            ColumnType::MediumInt { unsigned } => number(f, "mediumint", *unsigned),
            ColumnType::Int { unsigned } => number(f, "int", *unsigned),
            ColumnType::BigInt { unsigned } => number(f, "bigint", *unsigned),
            ColumnType::Decimal {
                precision,
                scale,
                unsigned,
            } => number(f, &format!("decimal({precision},{scale})"), *unsigned),
            ColumnType::Float { unsigned, digits } => floating(f, "float", *digits, *unsigned),
            ColumnType::Double { unsigned, digits } => floating(f, "double", *digits, *unsigned),
            ColumnType::Bit { length } => write!(f, "bit({length})"),
            ColumnType::Char { length } => write!(f, "char({length})"),
            ColumnType::VarChar { length } => write!(f, "varchar({length})"),
            ColumnType::Text(size) => write!(f, "{}text", size.prefix()),
            ColumnType::Binary { length } => write!(f, "binary({length})"),
            ColumnType::VarBinary { length } => write!(f, "varbinary({length})"),
            ColumnType::Blob(size) => write!(f, "{}blob", size.prefix()),
            ColumnType::Date => f.write_str("date"),
            ColumnType::DateTime { digits: count } => digits(f, "datetime", *count),
            ColumnType::Timestamp { digits: count } => digits(f, "timestamp", *count),
            ColumnType::Time { digits: count } => digits(f, "time", *count),
            ColumnType::Year => f.write_str("year"),
            ColumnType::Json => f.write_str("json"),
            ColumnType::Enum(words) => list(f, "enum", words),
            ColumnType::Set(words) => list(f, "set", words),
            ColumnType::Null => f.write_str("null"),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, name: &str, words: &[String]) -> fmt::Result {
    write!(f, "{name}(")?;
    for (index, word) in words.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let word = word.replace('\\', "\\\\").replace('\'', "''");
        write!(f, "{comma}'{word}'")?;
    }
    f.write_str(")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_survives_the_round_trip() {
        for text in [
            "mediumint unsigned",
            "char(32)",
            "datetime(3)",
            "time",
            "year",
            "bit(8)",
            "decimal(50,2)",
            "double(10,2) unsigned",
            "float(7,3)",
            "double",
            "enum('a','it''s')",
            "tinyint(1)",
            "json",
            "longblob",
        ] {
            let declared: ColumnType = text.parse().expect(text);
            let field = declared.to_arrow("c", true);
            assert_eq!(ColumnType::from_arrow(&field), declared, "{text}");
            assert_eq!(declared.to_string(), text);
        }
    }

    #[test]
    fn metadata_that_contradicts_the_arrow_type_is_ignored() {
        let field = ColumnType::Year
            .to_arrow("c", true)
            .with_data_type(DataType::Utf8View);
        assert_eq!(
            ColumnType::from_arrow(&field),
            ColumnType::Text(BlobSize::Long)
        );
    }
}
