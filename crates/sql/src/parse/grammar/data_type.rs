//! The types of CAST and CONVERT, and those in front of a literal.
//!
//! Columns are declared with types that `mayfly_types` reads.

use datafusion::sql::sqlparser::ast::{
    CharLengthUnits, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo,
};

use super::is_one_of;

/// Whether CAST has a type: the table of all types.
pub(super) fn is_cast_type(of: &DataType) -> bool {
    match of {
        DataType::Binary(_)
        | DataType::Date
        | DataType::Datetime(_)
        | DataType::DoublePrecision
        | DataType::JSON
        | DataType::Real
        | DataType::Signed
        | DataType::SignedInteger
        | DataType::Unsigned
        | DataType::UnsignedInteger
        // MariaDB's.
        | DataType::Int(None)
        | DataType::Integer(None) => true,
        DataType::Char(length) | DataType::Character(length) | DataType::Varchar(length) => {
            match length {
                None
                | Some(CharacterLength::IntegerLength {
                    length: _,
                    unit: None,
                }) => true,
                Some(
                    CharacterLength::IntegerLength {
                        length: _,
                        unit: Some(CharLengthUnits::Characters | CharLengthUnits::Octets),
                    }
                    | CharacterLength::Max,
                ) => false,
            }
        }
        DataType::Decimal(digits) | DataType::Dec(digits) => match digits {
            ExactNumberInfo::None | ExactNumberInfo::Precision(_) => true,
            ExactNumberInfo::PrecisionAndScale(_, scale) => *scale >= 0,
        },
        DataType::Double(digits) | DataType::Float(digits) => match digits {
            ExactNumberInfo::None
            | ExactNumberInfo::Precision(_)
            | ExactNumberInfo::PrecisionAndScale(_, _) => true,
        },
        DataType::Time(_, zone) => has_no_zone(zone),
        DataType::Custom(name, _) => is_custom(name),

        DataType::AnyType
        | DataType::Array(_)
        | DataType::BigDecimal(_)
        | DataType::BigInt(_)
        | DataType::BigIntUnsigned(_)
        | DataType::BigNumeric(_)
        | DataType::Bit(_)
        | DataType::BitVarying(_)
        | DataType::Blob(_)
        | DataType::Bool
        | DataType::Boolean
        | DataType::Bytea
        | DataType::Bytes(_)
        | DataType::CharLargeObject(_)
        | DataType::CharVarying(_)
        | DataType::CharacterLargeObject(_)
        | DataType::CharacterVarying(_)
        | DataType::Clob(_)
        | DataType::Date32
        | DataType::Datetime64(_, _)
        | DataType::DecUnsigned(_)
        | DataType::DecimalUnsigned(_)
        | DataType::DoublePrecisionUnsigned
        | DataType::DoubleUnsigned(_)
        | DataType::Enum(_, _)
        | DataType::FixedString(_)
        | DataType::Float32
        | DataType::Float4
        | DataType::Float64
        | DataType::Float8
        | DataType::FloatUnsigned(_)
        | DataType::GeometricType(_)
        | DataType::HugeInt
        | DataType::Int(Some(_))
        | DataType::Int128
        | DataType::Int16
        | DataType::Int2(_)
        | DataType::Int256
        | DataType::Int2Unsigned(_)
        | DataType::Int32
        | DataType::Int4(_)
        | DataType::Int4Unsigned(_)
        | DataType::Int64
        | DataType::Int8(_)
        | DataType::Int8Unsigned(_)
        | DataType::IntUnsigned(_)
        | DataType::Integer(Some(_))
        | DataType::IntegerUnsigned(_)
        | DataType::Interval { .. }
        | DataType::JSONB
        | DataType::LongBlob
        | DataType::LongText
        | DataType::LowCardinality(_)
        | DataType::Map(_, _)
        | DataType::MediumBlob
        | DataType::MediumInt(_)
        | DataType::MediumIntUnsigned(_)
        | DataType::MediumText
        | DataType::NamedTable { .. }
        | DataType::Nested(_)
        | DataType::Nullable(_)
        | DataType::Numeric(_)
        | DataType::Nvarchar(_)
        | DataType::RealUnsigned
        | DataType::Regclass
        | DataType::Set(_)
        | DataType::SmallInt(_)
        | DataType::SmallIntUnsigned(_)
        | DataType::String(_)
        | DataType::Struct(_, _)
        | DataType::Table(_)
        | DataType::Text
        | DataType::Timestamp(_, _)
        | DataType::TimestampNtz(_)
        | DataType::TinyBlob
        | DataType::TinyInt(_)
        | DataType::TinyIntUnsigned(_)
        | DataType::TinyText
        | DataType::Trigger
        | DataType::TsQuery
        | DataType::TsVector
        | DataType::Tuple(_)
        | DataType::UBigInt
        | DataType::UHugeInt
        | DataType::UInt128
        | DataType::UInt16
        | DataType::UInt256
        | DataType::UInt32
        | DataType::UInt64
        | DataType::UInt8
        | DataType::USmallInt
        | DataType::UTinyInt
        | DataType::Union(_)
        | DataType::Unspecified
        | DataType::Uuid
        | DataType::VarBit(_)
        | DataType::Varbinary(_) => false,
    }
}

/// Whether a text may stand behind a type: DATE '2024-02-29'.
pub(super) fn is_literal_type(of: &DataType) -> bool {
    match of {
        DataType::Date => true,
        DataType::Time(None, zone) | DataType::Timestamp(None, zone) => has_no_zone(zone),
        _ => false,
    }
}

fn has_no_zone(zone: &TimezoneInfo) -> bool {
    match zone {
        TimezoneInfo::None => true,
        TimezoneInfo::WithTimeZone | TimezoneInfo::WithoutTimeZone | TimezoneInfo::Tz => false,
    }
}

/// The types of MySQL for which sqlparser has no word, and those of geometry, which are refused
/// where they are planned.
fn is_custom(name: &ObjectName) -> bool {
    const KNOWN: [&str; 9] = [
        "GEOMETRYCOLLECTION",
        "LINESTRING",
        "MULTILINESTRING",
        "MULTIPOINT",
        "MULTIPOLYGON",
        "NCHAR",
        "POINT",
        "POLYGON",
        "YEAR",
    ];
    is_one_of(name, &KNOWN)
}
