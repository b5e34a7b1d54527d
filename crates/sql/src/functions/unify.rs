//! The one type that values of several types have together: the branches of CASE and IF, the
//! arguments of COALESCE and GREATEST, the columns of a UNION.
//!
//! **Source**: "Control Flow Functions" and "CREATE TABLE ... SELECT" of the MySQL manual.

use mayfly_types::{BlobSize, ColumnType, Digits};

use super::listed::text_type;

const TEXT: ColumnType = ColumnType::Text(BlobSize::Long);
const BYTES: ColumnType = ColumnType::Blob(BlobSize::Long);
const DECIMAL_DIGITS: u8 = 65;
pub(crate) const DECIMAL_SCALE: u8 = 30;

/// The type that holds the values of all types: what is chosen of ENUM or SET is a text.
pub(crate) fn unify(types: &[ColumnType]) -> ColumnType {
    text_type(&together(types))
}

/// The type that a column of a union has: ENUM and SET stay what they are beside NULL alone.
pub(crate) fn unify_columns(types: &[ColumnType]) -> ColumnType {
    let mut values = types.iter().filter(|of| **of != ColumnType::Null);
    match values.nth(1) {
        None => together(types),
        Some(_) => unify(types),
    }
}

fn together(types: &[ColumnType]) -> ColumnType {
    types
        .iter()
        .fold(ColumnType::Null, |all, one| pair(&all, one))
}

/// Bytes of an integer type, and whether it is unsigned.
fn integer(of: &ColumnType) -> Option<(u8, bool)> {
    Some(match of {
        ColumnType::Bool => (1, false),
        ColumnType::TinyInt { unsigned } => (1, *unsigned),
        ColumnType::SmallInt { unsigned } => (2, *unsigned),
        ColumnType::Year => (2, true),
        ColumnType::MediumInt { unsigned } => (3, *unsigned),
        ColumnType::Int { unsigned } => (4, *unsigned),
        ColumnType::BigInt { unsigned } => (8, *unsigned),
        ColumnType::Bit { .. } => (8, true),
        _ => return None,
    })
}

fn integer_of(bytes: u8, unsigned: bool) -> ColumnType {
    match bytes {
        1 => ColumnType::TinyInt { unsigned },
        2 => ColumnType::SmallInt { unsigned },
        3 => ColumnType::MediumInt { unsigned },
        4 => ColumnType::Int { unsigned },
        _ => ColumnType::BigInt { unsigned },
    }
}

/// Digits before the point and after it that an exact type has.
pub(crate) fn exact_digits(of: &ColumnType) -> Option<(u8, u8)> {
    if let ColumnType::Decimal {
        precision, scale, ..
    } = of
    {
        return Some((precision - scale, *scale));
    }
    integer(of).map(|(bytes, unsigned)| match (bytes, unsigned) {
        (1, _) => (3, 0),
        (2, _) => (5, 0),
        (3, _) => (8, 0),
        (4, _) => (10, 0),
        (_, false) => (19, 0),
        (_, true) => (20, 0),
    })
}

/// A DECIMAL with that many digits before and after the point, as far as MySQL allows.
pub(crate) fn decimal(before: u8, scale: u8) -> ColumnType {
    let scale = scale.min(DECIMAL_SCALE);
    let precision = before.saturating_add(scale).clamp(1, DECIMAL_DIGITS);
    ColumnType::Decimal {
        precision,
        scale: scale.min(precision),
        unsigned: false,
    }
}

/// Digits behind the point that a number always shows; a DOUBLE shows as many as it has, which is
/// more than any.
pub(crate) fn shown_digits(of: &ColumnType) -> u8 {
    match exact_digits(of) {
        Some((_, scale)) => scale,
        None => of.shown_digits().unwrap_or(NOT_FIXED),
    }
}

/// The DOUBLE that shows so many digits behind the point.
pub(crate) fn double(digits: u8) -> ColumnType {
    if digits < NOT_FIXED {
        ColumnType::double_with(digits)
    } else {
        ColumnType::DOUBLE
    }
}

/// The FLOAT that shows the digits of two, if both show a number of them.
fn float(left: Option<Digits>, right: Option<Digits>) -> ColumnType {
    let digits = left.zip(right).map(|(left, right)| {
        let before = |digits: Digits| digits.total.saturating_sub(digits.fraction);
        let fraction = left.fraction.max(right.fraction);
        let total = before(left).max(before(right)).saturating_add(fraction);
        Digits { total, fraction }
    });
    ColumnType::Float {
        unsigned: false,
        digits,
    }
}

/// More digits behind the point than can be asked for.
const NOT_FIXED: u8 = DECIMAL_SCALE + 1;

fn pair(left: &ColumnType, right: &ColumnType) -> ColumnType {
    if left == right || *right == ColumnType::Null {
        return left.clone();
    }
    if *left == ColumnType::Null {
        return right.clone();
    }
    if let (ColumnType::Bit { length }, ColumnType::Bit { length: other }) = (left, right) {
        return ColumnType::Bit {
            length: *length.max(other),
        };
    }
    if let (Some((left_bytes, left_unsigned)), Some((right_bytes, right_unsigned))) =
        (integer(left), integer(right))
    {
        if left_unsigned == right_unsigned {
            return integer_of(left_bytes.max(right_bytes), left_unsigned);
        }
        let unsigned_bytes = if left_unsigned {
            left_bytes
        } else {
            right_bytes
        };
        let signed_bytes = if left_unsigned {
            right_bytes
        } else {
            left_bytes
        };
        return match unsigned_bytes {
            8 => decimal(20, 0),
            4 => integer_of(8, false),
            less => integer_of((less * 2).max(signed_bytes), false),
        };
    }
    if left.is_numeric() && right.is_numeric() {
        return match (exact_digits(left), exact_digits(right)) {
            (Some((left, left_scale)), Some((right, right_scale))) => {
                decimal(left.max(right), left_scale.max(right_scale))
            }
            _ => match (left, right) {
                (ColumnType::Float { digits: of, .. }, ColumnType::Float { digits: other, .. }) => {
                    float(*of, *other)
                }
                _ => double(shown_digits(left).max(shown_digits(right))),
            },
        };
    }
    if left.is_temporal() && right.is_temporal() {
        let digits = left.second_digits().max(right.second_digits());
        return match (left, right) {
            (ColumnType::Time { .. }, ColumnType::Time { .. }) => ColumnType::Time { digits },
            (ColumnType::Timestamp { .. }, ColumnType::Timestamp { .. }) => {
                ColumnType::Timestamp { digits }
            }
            _ => ColumnType::DateTime { digits },
        };
    }
    if left.is_binary_string() || right.is_binary_string() {
        BYTES
    } else {
        TEXT
    }
}
