//! One value of a row, between where it lies and how it is written.

use arrow_buffer::i256;

/// A value as its [`ColumnType`](mayfly_types::ColumnType) lies in Arrow
/// ([`data_type`](mayfly_types::ColumnType::data_type)), for
/// [`Rows::push_row`](crate::Rows::push_row). The column rules how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// TINYINT to BIGINT.
    Integer(i64),
    /// The same without a sign; YEAR and BIT too.
    Unsigned(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL: the number without its point, and how many digits stand behind the point.
    Decimal(i128, i8),
    /// DECIMAL of more than 38 digits.
    WideDecimal(i256, i8),
    /// CHAR, TEXT, ENUM, SET, JSON in UTF-8; BINARY and BLOB as they are.
    Bytes(&'a [u8]),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// DATETIME and TIMESTAMP: microseconds since 1970-01-01 00:00:00.
    Moment(i64),
    /// TIME: microseconds.
    Time(i64),
}
