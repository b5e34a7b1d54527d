//! The parameters of COM_STMT_EXECUTE.

/// A value for a `?`, as the client's type says.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Parameter<'a> {
    /// NULL.
    Null,
    /// A whole number with a sign.
    Integer(i64),
    /// A whole number without a sign.
    Unsigned(u64),
    /// A FLOAT.
    Float(f32),
    /// A DOUBLE.
    Double(f64),
    /// A DECIMAL as the client wrote it, which need not be a number.
    Decimal(&'a [u8]),
    /// A text in the client's `character_set_client`.
    Text(&'a [u8]),
    /// Bytes without a character set.
    Bytes(&'a [u8]),
    /// A day; each part may be zero, none has been checked against the calendar.
    Date {
        /// 0 to 65535.
        year: u16,
        /// 1 to 12, or 0.
        month: u8,
        /// 1 to 31, or 0.
        day: u8,
    },
    /// A day and a time, checked no further than to be numbers.
    DateTime {
        /// 0 to 65535.
        year: u16,
        /// 1 to 12, or 0.
        month: u8,
        /// 1 to 31, or 0.
        day: u8,
        /// 0 to 23.
        hour: u8,
        /// 0 to 59.
        minute: u8,
        /// 0 to 59.
        second: u8,
        /// Microseconds, 0 to 999999.
        micros: u32,
    },
    /// A duration.
    Time {
        /// Whether it is before zero.
        negative: bool,
        /// Whole days, to be added to the hours.
        days: u32,
        /// 0 to 23.
        hours: u8,
        /// 0 to 59.
        minutes: u8,
        /// 0 to 59.
        seconds: u8,
        /// Microseconds, 0 to 999999.
        micros: u32,
    },
}
