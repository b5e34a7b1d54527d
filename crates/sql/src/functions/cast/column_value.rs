//! What a column keeps of a value, for what reads the column before its row is written.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::is_null;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use mayfly_types::ColumnType;

use super::{Conversions, Purpose, make};
use crate::functions::own::KEPT_AS;

/// What the digits of a type follow where NULL is the zero of the type.
const OR_ZERO: &str = "or_zero_";

/// What a column keeps of NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    Stay,
    /// The zero of its type, if that has one.
    Zero,
}

impl Nulls {
    /// What the function does.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Nulls::Stay => "keep",
            Nulls::Zero => "keep_or_zero",
        }
    }

    /// The values that a column of this type keeps.
    pub(super) fn filled(self, array: ArrayRef, of: &ColumnType) -> Result<ArrayRef> {
        if self == Nulls::Stay || array.null_count() == 0 {
            return Ok(array);
        }
        let Some(zero) = zero(of) else {
            return Ok(array);
        };
        let zero = Conversions {
            array: &zero.to_array()?,
            from: &ColumnType::from_data_type(&zero.data_type()),
            target: of,
            purpose: &kept(),
            before: 0,
            session: None,
        }
        .run()?;
        let zero = ScalarValue::try_from_array(&zero, 0)?.to_scalar()?;
        Ok(zip(&is_null(&array)?, &zero, &array)?)
    }
}

/// The value that MySQL puts where a NOT NULL column has none and the mode is not strict; `None`
/// where that is the zero date, which cannot be held.
pub fn zero(column_type: &ColumnType) -> Option<ScalarValue> {
    if column_type.is_numeric() {
        return Some(ScalarValue::Int64(Some(0)));
    }
    Some(match column_type.data_type() {
        DataType::Date32 | DataType::Timestamp(_, _) => return None,
        DataType::Duration(_) => ScalarValue::DurationMicrosecond(Some(0)),
        _ => match column_type {
            ColumnType::Enum(words) => ScalarValue::Utf8(words.first().cloned()),
            // It has all of its bytes, in whatever way it comes to the column.
            ColumnType::Binary { length } => {
                let length = usize::try_from(*length).unwrap_or(usize::MAX);
                ScalarValue::BinaryView(Some(vec![0; length]))
            }
            _ => ScalarValue::Utf8(Some(String::new())),
        },
    })
}

/// The name of the function that makes a value what a column of this type keeps of it: the type is
/// in it as digits, because names of functions lose their case.
pub(crate) fn keeping_name(of: &ColumnType, nulls: Nulls) -> String {
    let digits = of.to_string().into_bytes().into_iter();
    let digits: String = digits.map(|byte| format!("{byte:02x}")).collect();
    match nulls {
        Nulls::Stay => format!("{KEPT_AS}{digits}"),
        Nulls::Zero => format!("{KEPT_AS}{OR_ZERO}{digits}"),
    }
}

/// The function of such a name. It has the values of an assignment that is not strict, and never
/// warns.
pub(crate) fn keeping(name: &str) -> Option<Arc<ScalarUDF>> {
    let digits = name.strip_prefix(KEPT_AS)?;
    let (digits, nulls) = match digits.strip_prefix(OR_ZERO) {
        Some(digits) => (digits, Nulls::Zero),
        None => (digits, Nulls::Stay),
    };
    let digits = digits.as_bytes().chunks(2);
    let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let text = String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()?;
    let target = text.parse().ok()?;
    Some(Arc::new(make(target, kept(), Some(nulls))))
}

fn kept() -> Purpose {
    Purpose::Assign {
        column: String::new(),
        strict: false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, StringArray};
    use arrow::datatypes::UInt16Type;

    use super::super::target;
    use super::*;

    #[test]
    fn what_a_column_keeps_is_named_by_its_type() {
        for text in [
            "int unsigned",
            "year",
            "bit(4)",
            "decimal(5,2)",
            "enum('a','B')",
        ] {
            let of: ColumnType = text.parse().expect(text);
            for nulls in [Nulls::Stay, Nulls::Zero] {
                let name = keeping_name(&of, nulls);
                // Names of functions are made lower on their way.
                assert_eq!(name, name.to_lowercase());
                let function = keeping(&name).expect(text);
                assert_eq!(target(&function), Some(&of));
                assert!(function.name().starts_with(nulls.verb()));
            }
        }
        assert!(keeping("abs").is_none());
        assert!(keeping(&format!("{KEPT_AS}zz")).is_none());
        assert!(keeping(&format!("{KEPT_AS}{OR_ZERO}zz")).is_none());
    }

    #[test]
    fn null_is_the_zero_of_a_type_that_has_one() {
        let nulls = |of: &ColumnType| arrow::array::new_null_array(&of.data_type(), 2);
        let year = Nulls::Zero.filled(nulls(&ColumnType::Year), &ColumnType::Year);
        assert_eq!(year.unwrap().as_primitive::<UInt16Type>().values(), &[0, 0]);
        for (of, zero) in [
            ("enum('a','B')", "a"),
            ("set('a','B')", ""),
            ("varchar(3)", ""),
        ] {
            let of: ColumnType = of.parse().expect(of);
            let filled = Nulls::Zero.filled(nulls(&of), &of).unwrap();
            let texts = arrow::compute::cast(&filled, &DataType::Utf8).unwrap();
            let expected: ArrayRef = Arc::new(StringArray::from(vec![zero, zero]));
            assert_eq!(&texts, &expected);
        }
        let of = ColumnType::Binary { length: 2 };
        let filled = Nulls::Zero.filled(nulls(&of), &of).unwrap();
        assert_eq!(filled.as_binary_view().value(1), &[0, 0]);
        for of in [ColumnType::Date, ColumnType::Year] {
            let nulls = nulls(&of);
            assert_eq!(
                &Nulls::Stay.filled(Arc::clone(&nulls), &of).unwrap(),
                &nulls
            );
        }
        let dates = nulls(&ColumnType::Date);
        let kept = Nulls::Zero.filled(Arc::clone(&dates), &ColumnType::Date);
        assert_eq!(&kept.unwrap(), &dates);
    }
}
