//! States of finished groups into result columns.

use std::fmt::Display;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, Float64Type, Int64Type, SchemaRef,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use mayfly_table::rows::GroupColumns;
use mayfly_types::{ErrorCode, MySqlError};

use super::recipe::{Output, Statistic};
use crate::batches::batch_of;

/// The result batch: group columns, then one column for each aggregate.
pub(super) fn result_batch(
    schema: &SchemaRef,
    outputs: &[Output],
    groups: GroupColumns,
) -> Result<RecordBatch> {
    let GroupColumns {
        rows,
        key,
        payload,
        states,
    } = groups;
    let mut columns = key;
    for output in outputs {
        let field = schema.field(columns.len());
        let column = match output {
            Output::Payload(at) => Arc::clone(&payload[*at]),
            Output::State(at) => narrow(Arc::clone(&states[*at][0]), field)?,
            Output::Average { sum, count } => average(&states[*sum][0], &states[*count][0]),
            Output::Moments { state, statistic } => moments(&states[*state], *statistic),
        };
        columns.push(column);
    }
    batch_of(schema, columns, rows)
}

/// A state's array as the type that the function returns.
fn narrow(array: ArrayRef, field: &Field) -> Result<ArrayRef> {
    let result_type = field.data_type();
    let out_of_range = |_: ArrowError| {
        // A plan writes more behind the name of a function than a user has written.
        let function = field.name().split('(').next().unwrap_or_default();
        let arguments: [&dyn Display; 2] = [&"DECIMAL", &function];
        let error = MySqlError::new(ErrorCode::ValueOutOfRange, &arguments);
        DataFusionError::External(Box::new(error))
    };
    if array.data_type() == result_type {
        return Ok(array);
    }
    Ok(match result_type {
        DataType::Date32 | DataType::Time32(_) => {
            cast(&cast(&array, &DataType::Int32)?, result_type)?
        }
        DataType::Decimal128(precision, scale) => {
            let digits = array.as_primitive::<Decimal128Type>().clone();
            let valid = digits.validate_decimal_precision(*precision);
            valid.map_err(out_of_range)?;
            Arc::new(digits.with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Decimal256(precision, scale) => {
            let digits = array.as_primitive::<Decimal256Type>().clone();
            let valid = digits.validate_decimal_precision(*precision);
            valid.map_err(out_of_range)?;
            Arc::new(digits.with_precision_and_scale(*precision, *scale)?)
        }
        _ => cast(&array, result_type)?,
    })
}

fn average(sum: &ArrayRef, count: &ArrayRef) -> ArrayRef {
    let sums = sum.as_primitive::<Float64Type>();
    let counts = count.as_primitive::<Int64Type>();
    let quotients = sums.iter().zip(counts.values()).map(|(sum, count)| {
        // A group without values has no sum.
        sum.filter(|_| *count > 0).map(|sum| sum / *count as f64)
    });
    Arc::new(quotients.collect::<Float64Array>())
}

fn moments(parts: &[ArrayRef], statistic: Statistic) -> ArrayRef {
    let counts = parts[0].as_primitive::<Float64Type>().values();
    let squares = parts[2].as_primitive::<Float64Type>().values();
    let values = counts.iter().zip(squares).map(|(count, squares)| {
        let divisor = if statistic.sample {
            count - 1.0
        } else {
            *count
        };
        let variance = (divisor > 0.0).then(|| squares / divisor)?;
        Some(if statistic.root {
            variance.sqrt()
        } else {
            variance
        })
    });
    Arc::new(values.collect::<Float64Array>())
}
