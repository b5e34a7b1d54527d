//! Days, and how many digits of a second arguments bring along.

use arrow::datatypes::FieldRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use mayfly_types::ColumnType;

use super::super::calendar;

/// The day as an array holds it, if MySQL has it.
pub(super) fn day32(day: i64) -> Option<i32> {
    i32::try_from(day)
        .ok()
        .filter(|day| calendar::in_range(i64::from(*day)))
}

pub(super) fn constant_text(value: Option<&ScalarValue>) -> Option<&str> {
    value.and_then(|value| value.try_as_str().flatten())
}

/// The digits of a second that a value of a field may have; a constant text shows its own.
pub(super) fn digits_of(field: &FieldRef, constant: Option<&ScalarValue>) -> u8 {
    if let Some(text) = constant_text(constant) {
        let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        return u8::try_from(digits.min(6)).unwrap_or(6);
    }
    match ColumnType::from_arrow(field) {
        of if of.is_temporal() => of.second_digits(),
        ColumnType::Decimal { scale, .. } => scale.min(6),
        of if of.is_integer() || of == ColumnType::Null => 0,
        _ => 6,
    }
}

/// The most digits of a second among the arguments.
pub(super) fn most_digits(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> u8 {
    let constants = constants.iter().copied().chain(std::iter::repeat(None));
    fields
        .iter()
        .zip(constants)
        .map(|(f, c)| digits_of(f, c))
        .max()
        .unwrap_or(0)
}

pub(super) fn time_of(
    fields: &[FieldRef],
    constants: &[Option<&ScalarValue>],
) -> Result<ColumnType> {
    Ok(ColumnType::Time {
        digits: most_digits(fields, constants),
    })
}

pub(super) fn moment_of(
    fields: &[FieldRef],
    constants: &[Option<&ScalarValue>],
) -> Result<ColumnType> {
    Ok(ColumnType::DateTime {
        digits: most_digits(fields, constants),
    })
}
