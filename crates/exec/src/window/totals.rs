//! Sums and counts of frames, row by row.
//!
//! DataFusion's accumulators take arrays and give scalars: for a frame that slides, two arrays and
//! a scalar a row, 200 to 450 ns. Here a number is added or taken back where it lies, 10 to 20 ns.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, AsArray, Int64Array, NullBufferBuilder, PrimitiveArray,
};
use arrow::datatypes::{
    ArrowNumericType, DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, UInt64Type,
};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::frame_state::FrameState;

/// The state of a sum or a count of arguments of these types; `None` for other functions and types.
pub(super) fn total_of(
    aggregate: &AggregateFunctionExpr,
    types: &[DataType],
) -> Option<Box<dyn FrameState>> {
    use DataType::{Decimal128, Decimal256, Float64, Int64, UInt64};
    let result = aggregate.field().data_type().clone();
    Some(match (aggregate.fun().name(), types, &result) {
        ("count", _, Int64) if types.iter().all(has_plain_nulls) => Box::new(Count::default()),
        ("sum", [Int64], Int64) => Box::new(Sum::<Int64Type>::new(result)),
        ("sum", [UInt64], UInt64) => Box::new(Sum::<UInt64Type>::new(result)),
        ("sum", [Float64], Float64) => Box::new(Sum::<Float64Type>::new(result)),
        ("sum", [Decimal128(..)], Decimal128(..)) => Box::new(Sum::<Decimal128Type>::new(result)),
        ("sum", [Decimal256(..)], Decimal256(..)) => Box::new(Sum::<Decimal256Type>::new(result)),
        _ => return None,
    })
}

/// Whether the NULLs of a type are those that its arrays mark, and not some of their values.
fn has_plain_nulls(data_type: &DataType) -> bool {
    use DataType::{Dictionary, Null, RunEndEncoded, Union};
    !matches!(
        data_type,
        Dictionary(..) | RunEndEncoded(..) | Union(..) | Null
    )
}

/// A sum, which wraps around as those of DataFusion do. That of no value is NULL.
struct Sum<T: ArrowNumericType> {
    data_type: DataType,
    total: T::Native,
    /// Values in the frame.
    values: u64,
    results: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowNumericType> Sum<T> {
    fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            total: T::Native::ZERO,
            values: 0,
            results: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Calls a function with each value of some rows that is not NULL; how many there are.
    fn each(
        arguments: &[ArrayRef],
        rows: Range<usize>,
        mut see: impl FnMut(T::Native),
    ) -> Result<u64> {
        let [argument] = arguments else {
            return internal_err!("a sum has one argument");
        };
        let Some(argument) = argument.as_primitive_opt::<T>() else {
            return internal_err!("a sum of {} as {}", argument.data_type(), T::DATA_TYPE);
        };
        let values = &argument.values()[rows.clone()];
        let Some(nulls) = argument.nulls() else {
            values.iter().for_each(|value| see(*value));
            return Ok(rows.len() as u64);
        };
        let mut count = 0;
        for (row, value) in rows.zip(values) {
            if nulls.is_valid(row) {
                see(*value);
                count += 1;
            }
        }
        Ok(count)
    }
}

impl<T: ArrowNumericType> FrameState for Sum<T> {
    fn begin(&mut self) -> Result<()> {
        self.total = T::Native::ZERO;
        self.values = 0;
        Ok(())
    }

    fn add(&mut self, arguments: &[ArrayRef], rows: Range<usize>) -> Result<()> {
        let mut total = self.total;
        self.values += Self::each(arguments, rows, |value| total = total.add_wrapping(value))?;
        self.total = total;
        Ok(())
    }

    fn take_back(&mut self, arguments: &[ArrayRef], rows: Range<usize>) -> Result<()> {
        let mut total = self.total;
        self.values -= Self::each(arguments, rows, |value| total = total.sub_wrapping(value))?;
        self.total = total;
        Ok(())
    }

    fn answer(&mut self) -> Result<()> {
        self.results.push(self.total);
        self.nulls.append(self.values > 0);
        Ok(())
    }

    fn answer_empty(&mut self) {
        self.results.push(T::Native::ZERO);
        self.nulls.append_null();
    }

    fn answers(&mut self) -> Result<ArrayRef> {
        let results = std::mem::take(&mut self.results);
        let results = PrimitiveArray::<T>::try_new(results.into(), self.nulls.finish())?;
        Ok(Arc::new(results.with_data_type(self.data_type.clone())))
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.results.capacity() * size_of::<T::Native>()
    }
}

impl<T: ArrowNumericType> fmt::Debug for Sum<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sum")
            .field("data_type", &self.data_type)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

/// How many rows have no NULL among their arguments.
#[derive(Debug, Default)]
struct Count {
    count: i64,
    results: Vec<i64>,
}

fn count_of(arguments: &[ArrayRef], rows: &Range<usize>) -> i64 {
    let valid = |argument: &ArrayRef| argument.nulls().map(|it| it.inner().clone());
    let mut valid = arguments.iter().filter_map(valid);
    let count = match (valid.next(), valid.next()) {
        (None, _) => rows.len(),
        (Some(valid), None) => valid.slice(rows.start, rows.len()).count_set_bits(),
        (Some(_), Some(_)) => {
            let has_all = |row: &usize| arguments.iter().all(|it| it.is_valid(*row));
            rows.clone().filter(has_all).count()
        }
    };
    count as i64
}

impl FrameState for Count {
    fn begin(&mut self) -> Result<()> {
        self.count = 0;
        Ok(())
    }

    fn add(&mut self, arguments: &[ArrayRef], rows: Range<usize>) -> Result<()> {
        self.count += count_of(arguments, &rows);
        Ok(())
    }

    fn take_back(&mut self, arguments: &[ArrayRef], rows: Range<usize>) -> Result<()> {
        self.count -= count_of(arguments, &rows);
        Ok(())
    }

    fn answer(&mut self) -> Result<()> {
        self.results.push(self.count);
        Ok(())
    }

    fn answer_empty(&mut self) {
        self.results.push(0);
    }

    fn answers(&mut self) -> Result<ArrayRef> {
        let results = std::mem::take(&mut self.results);
        Ok(Arc::new(Int64Array::from(results)))
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.results.capacity() * size_of::<i64>()
    }
}
