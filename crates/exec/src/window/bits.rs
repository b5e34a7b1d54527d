//! BIT_AND and BIT_OR over frames that rows leave, which DataFusion's accumulators do not let go.
//!
//! Each of the 64 bits is counted, as MySQL does it: a row is added and taken back in a constant
//! number of steps.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err, not_impl_err};
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

/// Which bits of the result are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Those that all values have.
    And,
    /// Those that any value has.
    Or,
}

/// Counts the bits of the values in a frame.
#[derive(Debug)]
pub(super) struct BitCounts {
    rule: Rule,
    is_unsigned: bool,
    /// Values with each bit.
    counts: [u64; 64],
    values: u64,
}

impl BitCounts {
    /// The accumulator of an aggregate; `None` if it is none of these, or of other numbers.
    pub(super) fn of(aggregate: &AggregateFunctionExpr) -> Option<Self> {
        let rule = match aggregate.fun().name() {
            "bit_and" => Rule::And,
            "bit_or" => Rule::Or,
            _ => return None,
        };
        let is_unsigned = match aggregate.field().data_type() {
            DataType::UInt64 => true,
            DataType::Int64 => false,
            _ => return None,
        };
        Some(Self {
            rule,
            is_unsigned,
            counts: [0; 64],
            values: 0,
        })
    }

    /// Calls a function with the bits of each value that is not NULL.
    fn each(&self, values: &[ArrayRef], see: impl FnMut(u64)) -> Result<()> {
        let mut see = see;
        let [values] = values else {
            return internal_err!("a bit function has one argument");
        };
        match self.is_unsigned {
            true => values
                .as_primitive::<UInt64Type>()
                .iter()
                .flatten()
                .for_each(see),
            false => {
                let values = values.as_primitive::<Int64Type>().iter().flatten();
                values.for_each(|value| see(value.cast_unsigned()));
            }
        }
        Ok(())
    }

    fn bits(&self) -> Option<u64> {
        let is_set = |count: u64| match self.rule {
            Rule::And => count == self.values,
            Rule::Or => count > 0,
        };
        let bits = self.counts.iter().enumerate();
        let bits = bits.filter(|(_, count)| is_set(**count));
        (self.values > 0).then(|| bits.fold(0, |bits, (place, _)| bits | 1 << place))
    }
}

/// Calls a function with the place of each bit that is set.
fn each_place(mut bits: u64, mut see: impl FnMut(usize)) {
    while bits != 0 {
        see(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

impl Accumulator for BitCounts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (mut counts, mut count) = (self.counts, 0);
        self.each(values, |bits| {
            each_place(bits, |place| counts[place] += 1);
            count += 1;
        })?;
        self.counts = counts;
        self.values += count;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (mut counts, mut count) = (self.counts, 0);
        self.each(values, |bits| {
            each_place(bits, |place| counts[place] -= 1);
            count += 1;
        })?;
        self.counts = counts;
        self.values -= count;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let bits = self.bits();
        Ok(match self.is_unsigned {
            true => ScalarValue::UInt64(bits),
            false => ScalarValue::Int64(bits.map(u64::cast_signed)),
        })
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_impl_err!("the bits of a frame are not merged")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        not_impl_err!("the bits of a frame are not merged")
    }
}
