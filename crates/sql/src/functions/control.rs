//! Functions that choose among their arguments.
//!
//! The typing puts a lazy CASE in the place of IF and NULLIF; what is here decides the types, and
//! serves where no typing has run.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{interleave, is_not_null, is_null};
use arrow::datatypes::FieldRef;
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use mayfly_types::{BlobSize, ColumnType};

use super::call::Call;
use super::cast::convert_array;
use super::convert;
use super::define::{Definition, MANY, Returns, pure, result_field};
use super::own::{COMPARE, TO_BOOLEAN, TO_DOUBLE, TO_NUMBER};
use super::unify::unify;

pub(super) static FUNCTIONS: &[Definition] = &[
    pure(
        "if",
        &[],
        (3, 3),
        Returns::By(|fields, _| common(&fields[1..])),
        choose,
    ),
    pure(
        "ifnull",
        &[],
        (2, 2),
        Returns::By(|fields, _| common(fields)),
        coalesce,
    ),
    pure(
        "coalesce",
        &[],
        (1, MANY),
        Returns::By(|fields, _| common(fields)),
        coalesce,
    ),
    pure(
        "nullif",
        &[],
        (2, 2),
        Returns::By(|fields, _| common(&fields[..1])),
        nullif,
    ),
    pure(COMPARE, &[], (3, 3), Returns::Boolean, |_| {
        internal_err!("a comparison runs as an operator")
    }),
    pure("isnull", &[], (1, 1), Returns::Boolean, |call| {
        let nulls: ArrayRef = std::sync::Arc::new(is_null(call.array(0))?);
        spread(call, 0, &nulls)
    }),
    pure(
        "greatest",
        &[],
        (2, MANY),
        Returns::By(|fields, _| compared(fields)),
        |call| extreme(call, Ordering::Greater),
    ),
    pure(
        "least",
        &[],
        (2, MANY),
        Returns::By(|fields, _| compared(fields)),
        |call| extreme(call, Ordering::Less),
    ),
    pure("interval", &[], (2, MANY), Returns::Integer, interval),
    pure(TO_BOOLEAN, &[], (1, 1), Returns::Boolean, |call| {
        let truth: ArrayRef =
            std::sync::Arc::new(convert::to_boolean(call.array(0), call.session)?);
        spread(call, 0, &truth)
    }),
    pure(TO_DOUBLE, &[], (1, 1), Returns::Double, |call| {
        let doubles = call.doubles(0)?;
        let array: ArrayRef = std::sync::Arc::new(doubles.array().clone());
        spread(call, 0, &array)
    }),
    pure(TO_NUMBER, &[], (1, 1), Returns::Integer, |call| {
        let integers = call.integers(0)?;
        let array: ArrayRef = std::sync::Arc::new(integers.array().clone());
        spread(call, 0, &array)
    }),
];

/// The type that the arguments have together.
pub(crate) fn common(fields: &[FieldRef]) -> Result<ColumnType> {
    let types: Vec<ColumnType> = fields
        .iter()
        .map(|field| ColumnType::from_arrow(field))
        .collect();
    Ok(unify(&types))
}

/// As [`common`], but a number and a text are compared as DOUBLE.
fn compared(fields: &[FieldRef]) -> Result<ColumnType> {
    let types: Vec<ColumnType> = fields
        .iter()
        .map(|field| ColumnType::from_arrow(field))
        .collect();
    let any = |of: fn(&ColumnType) -> bool| types.iter().any(of);
    if any(ColumnType::is_numeric) && any(|of| of.is_text() || of.is_binary()) {
        return Ok(ColumnType::DOUBLE);
    }
    if any(ColumnType::is_temporal) && any(|of| *of == ColumnType::Text(BlobSize::Long)) {
        return Ok(ColumnType::Text(BlobSize::Long));
    }
    Ok(unify(&types))
}

/// The value of a one-row array in every row, if the argument was a constant.
fn spread(call: &Call<'_>, index: usize, array: &ArrayRef) -> Result<ArrayRef> {
    if call.is_constant(index) && call.rows != 1 {
        return ScalarValue::try_from_array(array, 0)?.to_array_of_size(call.rows);
    }
    Ok(std::sync::Arc::clone(array))
}

/// The arguments from `from` on, all as the result type and with all rows.
fn unified(call: &Call<'_>, from: usize) -> Result<Vec<ArrayRef>> {
    let of = call.result_type();
    let to = result_field("", &of).data_type().clone();
    (from..call.count())
        .map(|index| {
            let array = convert_array(
                call.array(index),
                &call.column_type(index),
                &of,
                call.session,
            )?;
            let array = arrow::compute::cast(&array, &to)?;
            spread(call, index, &array)
        })
        .collect()
}

fn choose(call: &Call<'_>) -> Result<ArrayRef> {
    let truth: ArrayRef = std::sync::Arc::new(convert::to_boolean(call.array(0), call.session)?);
    let truth = spread(call, 0, &truth)?;
    let branches = unified(call, 1)?;
    Ok(zip(
        arrow::array::AsArray::as_boolean(&truth),
        &branches[0],
        &branches[1],
    )?)
}

fn coalesce(call: &Call<'_>) -> Result<ArrayRef> {
    let mut arrays = unified(call, 0)?;
    let mut result = arrays.pop().expect("at least one argument");
    while let Some(array) = arrays.pop() {
        result = if array.null_count() == 0 {
            array
        } else {
            zip(&is_not_null(&array)?, &array, &result)?
        };
    }
    Ok(result)
}

fn nullif(call: &Call<'_>) -> Result<ArrayRef> {
    let (left, right) = (call.digits(0)?, call.digits(1)?);
    let equal: arrow::array::BooleanArray = (0..call.rows)
        .map(|row| Some(left.at(row).is_some() && left.at(row) == right.at(row)))
        .collect();
    let value = spread(call, 0, call.array(0))?;
    Ok(arrow::compute::nullif(&value, &equal)?)
}

/// GREATEST and LEAST: NULL if any argument is.
fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<ArrayRef> {
    let arrays = unified(call, 0)?;
    let mut picks = vec![(0_usize, 0_usize); call.rows];
    for (row, pick) in picks.iter_mut().enumerate() {
        *pick = (0, row);
    }
    for (index, array) in arrays.iter().enumerate().skip(1) {
        // The best so far beside this one, compared row by row.
        let references: Vec<&dyn Array> = arrays[..index].iter().map(|a| a.as_ref()).collect();
        let best = interleave(&references, &picks)?;
        let compare = arrow::array::make_comparator(
            array,
            &best,
            arrow::compute::SortOptions {
                descending: false,
                nulls_first: true,
            },
        )?;
        for (row, pick) in picks.iter_mut().enumerate() {
            if best.is_null(row) {
                continue;
            }
            if array.is_null(row) || compare(row, row) == wanted {
                *pick = (index, row);
            }
        }
    }
    let references: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    Ok(interleave(&references, &picks)?)
}

/// The number of the arguments, sorted upwards, that the first is not below.
fn interval(call: &Call<'_>) -> Result<ArrayRef> {
    let numbers = (0..call.count())
        .map(|i| call.doubles(i))
        .collect::<Result<Vec<_>>>()?;
    call.make_integers(|row| {
        let Some(number) = numbers[0].at(row) else {
            return Ok(Some(-1));
        };
        let below = numbers[1..]
            .iter()
            .take_while(|n| n.at(row).is_none_or(|n| n <= number));
        Ok(Some(i64::try_from(below.count()).expect("few arguments")))
    })
}
