//! Functions that tell of the session, and a few that fit nowhere else.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use mayfly_types::{Collation, ColumnType};

use super::arithmetic::DIVISION_DIGITS;
use super::call::Call;
use super::define::{Definition, MANY, Returns, pure, stable, volatile};
use super::own::{AVG_RESULT, SET_LAST_INSERT_ID, SUM_ARGUMENT, SUM_RESULT, TUPLE_KEY};
use super::session_values::Values;
use super::unify::{decimal, double, shown_digits};

/// An identifier that no other has, as UUID() makes it.
pub fn random_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

pub(super) static FUNCTIONS: &[Definition] = &[
    stable("version", &[], (0, 0), Returns::Text, |call| {
        text(call, |v| Some(v.version.clone()))
    }),
    stable("database", &["schema"], (0, 0), Returns::Text, |call| {
        text(call, |v| v.database.clone())
    }),
    stable(
        "user",
        &["current_user", "session_user", "system_user"],
        (0, 0),
        Returns::Text,
        |call| text(call, |v| Some(v.user.clone())),
    ),
    stable("connection_id", &[], (0, 0), Returns::Unsigned, |call| {
        unsigned(call, |v| v.connection_id)
    }),
    stable("last_insert_id", &[], (0, 1), Returns::Unsigned, |call| {
        unsigned(call, |values| values.last_insert_id)
    }),
    // With an argument it is another function: it is called for every row that there is.
    volatile(
        SET_LAST_INSERT_ID,
        &[],
        (1, 1),
        Returns::Unsigned,
        set_last_insert_id,
    ),
    stable("row_count", &[], (0, 0), Returns::Integer, |call| {
        let count = call
            .session
            .map_or(-1, |session| session.of_statement().row_count);
        call.make_integers(|_| Ok(Some(count)))
    }),
    stable("found_rows", &[], (0, 0), Returns::Integer, |call| {
        let count = call
            .session
            .map_or(0, |session| session.of_statement().found_rows);
        call.make_integers(|_| Ok(i64::try_from(count).ok()))
    }),
    pure("charset", &[], (1, 1), Returns::Text, |call| {
        let binary = !call.column_type(0).is_text();
        call.make_texts(|_, out| {
            out.push_str(if binary { "binary" } else { "utf8mb4" });
            Ok(true)
        })
    }),
    pure("collation", &[], (1, 1), Returns::Text, |call| {
        let binary = !call.column_type(0).is_text();
        let collation = if binary {
            Collation::Binary
        } else {
            Collation::default()
        };
        call.make_texts(|_, out| {
            out.push_str(collation.name());
            Ok(true)
        })
    }),
    volatile("uuid", &[], (0, 0), Returns::Text, |call| {
        call.make_texts(|_, out| {
            out.push_str(&random_uuid());
            Ok(true)
        })
    }),
    pure(
        SUM_ARGUMENT,
        &[],
        (1, 1),
        Returns::By(|f, _| Ok(summed(&ColumnType::from_arrow(&f[0])))),
        as_result,
    ),
    pure(
        SUM_RESULT,
        &[],
        (1, 1),
        Returns::By(|f, _| Ok(sum_type(&ColumnType::from_arrow(&f[0])))),
        as_result,
    ),
    pure(
        AVG_RESULT,
        &[],
        (3, 3),
        Returns::By(|f, c| Ok(avg_type(&ColumnType::from_arrow(&f[0]), more_digits(c)))),
        average,
    ),
    pure(TUPLE_KEY, &[], (1, MANY), Returns::Bytes, tuple_key),
];

fn text(call: &Call<'_>, of: fn(&Values) -> Option<String>) -> Result<ArrayRef> {
    let value = call
        .session
        .map_or_else(|| of(&Values::default()), |s| of(&s.of_statement()));
    call.make_texts(|_, out| {
        out.push_str(value.as_deref().unwrap_or_default());
        Ok(value.is_some())
    })
}

fn unsigned(call: &Call<'_>, of: fn(&Values) -> u64) -> Result<ArrayRef> {
    let value = call
        .session
        .map_or(0, |session| of(&session.of_statement()));
    call.make_unsigned(|_| Ok(Some(value)))
}

/// What becomes the value that the next call without an argument returns.
fn set_last_insert_id(call: &Call<'_>) -> Result<ArrayRef> {
    let ids = call.integers(0)?;
    call.make_unsigned(|row| {
        let id = ids.at(row).map(i64::cast_unsigned);
        if let Some(session) = call.session {
            let mut values = session.lock();
            values.last_insert_id = id.unwrap_or(0);
            values.said_insert_id = Some(values.last_insert_id);
            values.took_effect = true;
        }
        Ok(id)
    })
}

/// The type in which values of a type are added up: exact, and wide enough for any table.
fn summed(of: &ColumnType) -> ColumnType {
    match of {
        ColumnType::BigInt { .. } | ColumnType::Bit { .. } => decimal(20, 0),
        // The stock sum of a narrow decimal has no room for more than 38 digits, and wraps.
        ColumnType::Decimal {
            precision, scale, ..
        } if *precision > NARROW_DIGITS - SUM_EXTRA_DIGITS => {
            decimal((*precision).max(NARROW_DIGITS + 1) - scale, *scale)
        }
        ColumnType::Decimal { .. } => of.clone(),
        ColumnType::Date => ColumnType::BigInt { unsigned: false },
        ColumnType::Time { digits } => decimal(7, *digits),
        ColumnType::DateTime { digits } | ColumnType::Timestamp { digits } => decimal(14, *digits),
        ColumnType::Null => ColumnType::DOUBLE,
        // 2^32 rows of 32-bit numbers add up to less than 2^63.
        of if of.is_integer() => ColumnType::BigInt { unsigned: false },
        _ => ColumnType::DOUBLE,
    }
}

/// The type of SUM, from the type of the stock sum.
fn sum_type(of: &ColumnType) -> ColumnType {
    match of {
        ColumnType::BigInt { .. } => decimal(32, 0),
        other => other.clone(),
    }
}

/// The digits that the stock sum adds to those of its argument.
const SUM_EXTRA_DIGITS: u8 = 10;
const NARROW_DIGITS: u8 = 38;
const WIDE_DIGITS: u8 = 76;

/// The digits that AVG adds behind the point: its third argument.
fn more_digits(constants: &[Option<&ScalarValue>]) -> u8 {
    match constants.get(2) {
        Some(Some(ScalarValue::UInt8(Some(digits)))) => *digits,
        _ => DIVISION_DIGITS,
    }
}

fn avg_type(of: &ColumnType, more_digits: u8) -> ColumnType {
    match of {
        ColumnType::BigInt { .. } => decimal(20, more_digits),
        ColumnType::Decimal {
            precision, scale, ..
        } => {
            let before = precision - scale;
            let before = if *precision >= WIDE_DIGITS {
                before
            } else {
                before.saturating_sub(SUM_EXTRA_DIGITS).max(1)
            };
            decimal(before, scale + more_digits)
        }
        of => double(shown_digits(of).saturating_add(more_digits)),
    }
}

/// The argument as the type of the result.
fn as_result(call: &Call<'_>) -> Result<ArrayRef> {
    let (from, of) = (call.column_type(0), call.result_type());
    let array = super::cast::convert_array(call.array(0), &from, &of, call.session)?;
    if call.is_constant(0) && call.rows != 1 {
        let value = datafusion::common::ScalarValue::try_from_array(&array, 0)?;
        return value.to_array_of_size(call.rows);
    }
    Ok(array)
}

/// A sum divided by a count, rounded with halves away from zero; NULL for nothing.
fn average(call: &Call<'_>) -> Result<ArrayRef> {
    let counts = call.integers(1)?;
    if let ColumnType::Double { .. } = call.result_type() {
        let sums = call.doubles(0)?;
        #[expect(clippy::cast_precision_loss, reason = "a double is what is asked for")]
        return call.make_doubles(|row| {
            let count = counts.at(row).filter(|count| *count > 0)?;
            Some(sums.at(row)? / count as f64)
        });
    }
    super::arithmetic::divide(call)
}

/// The values of a row as bytes that are equal where all values are; NULL if one is NULL.
fn tuple_key(call: &Call<'_>) -> Result<ArrayRef> {
    let parts = (0..call.count())
        .map(|index| call.digits_as_bytes(index))
        .collect::<Result<Vec<_>>>()?;
    let mut builder = arrow::array::BinaryViewBuilder::with_capacity(call.rows);
    let mut key = Vec::new();
    for row in 0..call.rows {
        key.clear();
        let complete = parts.iter().all(|part| match part.at(row) {
            Some(bytes) => {
                key.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
                key.extend_from_slice(bytes);
                true
            }
            None => false,
        });
        if complete {
            builder.append_value(&key);
        } else {
            builder.append_null();
        }
    }
    Ok(Arc::new(builder.finish()))
}
