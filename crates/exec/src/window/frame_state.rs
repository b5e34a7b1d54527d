//! What a frame has come to: rows are added to it and taken back, and its result is that of the
//! next row.
//!
//! Owns: [`FrameState`], and [`Accumulated`], which is one over DataFusion's accumulators. Never:
//! knows which rows are in a frame.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::bits::BitCounts;

/// The state of an aggregate for the frame of one row after the other.
pub(super) trait FrameState: fmt::Debug + Send {
    /// Begins a partition: nothing is in the frame.
    fn begin(&mut self) -> Result<()>;

    /// Adds some rows of these arguments.
    fn add(&mut self, arguments: &[ArrayRef], rows: Range<usize>) -> Result<()>;

    /// Takes rows back that were added.
    fn take_back(&mut self, arguments: &[ArrayRef], rows: Range<usize>) -> Result<()>;

    /// Answers a row by what is in the frame.
    fn answer(&mut self) -> Result<()>;

    /// Answers a row whose frame is empty.
    fn answer_empty(&mut self);

    /// The answers since the last call.
    fn answers(&mut self) -> Result<ArrayRef>;

    /// Bytes of all that.
    fn bytes(&self) -> usize;
}

/// Any aggregate of DataFusion.
#[derive(Debug)]
pub(super) struct Accumulated {
    // Fixed.
    aggregate: Arc<AggregateFunctionExpr>,
    /// Whether rows leave the frame.
    is_sliding: bool,
    /// The result of a frame without rows.
    empty: ScalarValue,
    // State.
    accumulator: Box<dyn Accumulator>,
    /// Whether the accumulator has never been used.
    is_new: bool,
    answers: Vec<ScalarValue>,
    /// The last answer, as long as nothing has changed.
    last: Option<ScalarValue>,
}

impl Accumulated {
    pub(super) fn new(aggregate: Arc<AggregateFunctionExpr>, is_sliding: bool) -> Result<Self> {
        Ok(Self {
            empty: aggregate.default_value(aggregate.field().data_type())?,
            accumulator: accumulator(&aggregate, is_sliding)?,
            aggregate,
            is_sliding,
            is_new: true,
            answers: Vec::new(),
            last: None,
        })
    }

    fn change(&mut self) -> &mut dyn Accumulator {
        self.is_new = false;
        self.last = None;
        self.accumulator.as_mut()
    }
}

fn accumulator(
    aggregate: &AggregateFunctionExpr,
    is_sliding: bool,
) -> Result<Box<dyn Accumulator>> {
    if !is_sliding {
        return aggregate.create_accumulator();
    }
    match BitCounts::of(aggregate) {
        Some(counts) => Ok(Box::new(counts)),
        None => aggregate.create_sliding_accumulator(),
    }
}

fn slices(arguments: &[ArrayRef], rows: &Range<usize>) -> Vec<ArrayRef> {
    let slice = |argument: &ArrayRef| argument.slice(rows.start, rows.len());
    arguments.iter().map(slice).collect()
}

impl FrameState for Accumulated {
    fn begin(&mut self) -> Result<()> {
        if !self.is_new {
            self.accumulator = accumulator(&self.aggregate, self.is_sliding)?;
            self.is_new = true;
            self.last = None;
        }
        Ok(())
    }

    fn add(&mut self, arguments: &[ArrayRef], rows: Range<usize>) -> Result<()> {
        self.change().update_batch(&slices(arguments, &rows))
    }

    fn take_back(&mut self, arguments: &[ArrayRef], rows: Range<usize>) -> Result<()> {
        self.change().retract_batch(&slices(arguments, &rows))
    }

    fn answer(&mut self) -> Result<()> {
        let answer = match self.last.take() {
            Some(last) => last,
            None => {
                self.is_new = false;
                self.accumulator.evaluate()?
            }
        };
        self.answers.push(answer.clone());
        self.last = Some(answer);
        Ok(())
    }

    fn answer_empty(&mut self) {
        self.answers.push(self.empty.clone());
    }

    fn answers(&mut self) -> Result<ArrayRef> {
        ScalarValue::iter_to_array(std::mem::take(&mut self.answers))
    }

    fn bytes(&self) -> usize {
        self.accumulator.size()
    }
}
