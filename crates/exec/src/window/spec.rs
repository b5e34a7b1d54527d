//! What the functions of a window operator need: which columns are kept, which of them are keys,
//! and what each function is.
//!
//! Owns: [`WindowSpec`], made of DataFusion's window expressions, and the choice of those that this
//! operator computes. Never: holds rows.
//!
//! Inside, rows have the columns of the input, then what is computed of them (arguments and keys
//! that are no plain columns), then a flag for each order: whether the row begins new peers.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_window::cume_dist::CumeDist;
use datafusion::functions_window::lead_lag::{WindowShift, WindowShiftKind};
use datafusion::functions_window::nth_value::{NthValue, NthValueKind};
use datafusion::functions_window::ntile::Ntile;
use datafusion::functions_window::rank::Rank;
use datafusion::functions_window::row_number::RowNumber;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::window::{SlidingAggregateWindowExpr, StandardWindowExpr};
use datafusion::physical_plan::windows::{
    PlainAggregateWindowExpr, WindowAggExec, WindowExpr, WindowUDFExpr,
};

use super::frame::{FrameSpec, Order, RangeKey};
use super::rows::Source;
use crate::batches::batch_of;

/// The layout of a window operator.
#[derive(Debug)]
pub(super) struct WindowSpec {
    /// Schema of the rows inside.
    pub inner: SchemaRef,
    /// What is computed of the input, in the order of its columns in `inner`.
    computed: Vec<PhysicalExprRef>,
    /// The partition keys, as columns of `inner`.
    pub partition_by: Vec<usize>,
    /// The keys of each order, as columns of `inner`.
    pub orders: Vec<Vec<usize>>,
    pub functions: Vec<FunctionSpec>,
    input_columns: usize,
}

/// What a function is.
#[derive(Clone, Debug)]
pub(super) enum FunctionSpec {
    Ranking {
        kind: Ranking,
        order: Order,
    },
    /// The value of another row.
    Value {
        value: Source,
        field: FieldRef,
        place: ValuePlace,
    },
    Aggregate {
        aggregate: Arc<AggregateFunctionExpr>,
        arguments: Vec<Source>,
        /// Those of the arguments.
        types: Vec<DataType>,
        frame: FrameSpec,
    },
}

/// Functions of the place of a row in its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranking {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile(u64),
}

/// Which row's value a function answers.
#[derive(Clone, Debug)]
pub(super) enum ValuePlace {
    /// So many rows behind the current one, or the default.
    Shifted {
        rows: i64,
        default: ScalarValue,
    },
    /// A row of the frame: counted from its first one on, or back from its last one.
    FromStart {
        rows: u64,
        frame: FrameSpec,
    },
    FromEnd {
        rows: u64,
        frame: FrameSpec,
    },
    /// None of the frame.
    Nowhere,
}

impl FunctionSpec {
    /// Whether the function needs all rows of a partition before it can answer the first one.
    pub(super) fn keeps_partition(&self) -> bool {
        match self {
            FunctionSpec::Ranking { kind, .. } => matches!(
                kind,
                Ranking::PercentRank | Ranking::CumeDist | Ranking::Ntile(_)
            ),
            FunctionSpec::Value { place, .. } => match place {
                ValuePlace::FromStart { frame, .. } => {
                    frame.ends_with_partition() && !frame.has_current_row()
                }
                ValuePlace::FromEnd { frame, .. } => frame.ends_with_partition(),
                ValuePlace::Shifted { .. } | ValuePlace::Nowhere => false,
            },
            FunctionSpec::Aggregate { frame, .. } => frame.ends_with_partition(),
        }
    }
}

impl WindowSpec {
    /// The layout for expressions over an input, all with the same partition keys; `None` where one
    /// of them is left to DataFusion.
    ///
    /// # Errors
    /// When DataFusion cannot type an expression.
    pub(super) fn new(
        input: &SchemaRef,
        expressions: &[Arc<dyn WindowExpr>],
    ) -> Result<Option<Self>> {
        let mut layout = Layout {
            input: Arc::clone(input),
            computed: Vec::new(),
            types: Vec::new(),
            orders: Vec::new(),
        };
        let Some(first) = expressions.first() else {
            return Ok(None);
        };
        let partition_by = { first.partition_by().iter() }
            .map(|key| layout.column(key))
            .collect::<Result<Vec<_>>>()?;
        let mut functions = Vec::with_capacity(expressions.len());
        for expression in expressions {
            match layout.function(expression)? {
                Some(function) => functions.push(function),
                None => return Ok(None),
            }
        }
        Ok(Some(layout.finish(partition_by, functions)))
    }

    /// Whether partitions are kept as a whole.
    pub(super) fn keeps_partitions(&self) -> bool {
        self.functions.iter().any(FunctionSpec::keeps_partition)
    }

    /// The column of the first flag.
    pub(super) fn first_flag(&self) -> usize {
        self.inner.fields().len() - self.orders.len()
    }

    /// How many columns of the rows inside are those of the input.
    pub(super) fn input_columns(&self) -> usize {
        self.input_columns
    }

    /// The columns of a batch of the input, and what is computed of them.
    pub(super) fn compute(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut columns = batch.columns().to_vec();
        for expression in &self.computed {
            columns.push(expression.evaluate(batch)?.into_array(batch.num_rows())?);
        }
        Ok(columns)
    }

    /// The rows inside: what was computed, and the flags of all orders.
    pub(super) fn enter(
        &self,
        mut columns: Vec<ArrayRef>,
        flags: Vec<BooleanBuffer>,
        rows: usize,
    ) -> Result<RecordBatch> {
        let flags = flags.into_iter();
        columns.extend(flags.map(|flags| Arc::new(BooleanArray::new(flags, None)) as ArrayRef));
        batch_of(&self.inner, columns, rows)
    }
}

/// The functions of a node, if each of them is an aggregate over whole partitions in no order.
///
/// # Errors
/// When DataFusion cannot type an expression.
pub(crate) fn whole_aggregates(
    stock: &WindowAggExec,
) -> Result<Option<Vec<Arc<AggregateFunctionExpr>>>> {
    let windows = stock.window_expr();
    if windows.iter().any(|window| !window.order_by().is_empty()) {
        return Ok(None);
    }
    let Some(spec) = WindowSpec::new(&stock.input().schema(), windows)? else {
        return Ok(None);
    };
    let whole = spec.functions.into_iter().map(|function| match function {
        FunctionSpec::Aggregate {
            aggregate, frame, ..
        } if frame.is_whole() => Some(aggregate),
        _ => None,
    });
    Ok(whole.collect())
}

/// A layout that functions are added to.
struct Layout {
    input: SchemaRef,
    computed: Vec<PhysicalExprRef>,
    types: Vec<DataType>,
    orders: Vec<Vec<usize>>,
}

impl Layout {
    fn column(&mut self, expression: &PhysicalExprRef) -> Result<usize> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            return Ok(column.index());
        }
        let inputs = self.input.fields().len();
        if let Some(place) = self.computed.iter().position(|known| known == expression) {
            return Ok(inputs + place);
        }
        self.types.push(expression.data_type(&self.input)?);
        self.computed.push(Arc::clone(expression));
        Ok(inputs + self.computed.len() - 1)
    }

    fn source(&mut self, expression: &PhysicalExprRef) -> Result<Source> {
        match expression.downcast_ref::<Literal>() {
            Some(literal) => Ok(Source::Constant(literal.value().clone())),
            None => self.column(expression).map(Source::Column),
        }
    }

    fn type_of(&self, source: &Source) -> DataType {
        let inputs = self.input.fields().len();
        match source {
            Source::Constant(value) => value.data_type(),
            Source::Column(column) if *column < inputs => {
                self.input.field(*column).data_type().clone()
            }
            Source::Column(column) => self.types[column - inputs].clone(),
        }
    }

    /// The order of an expression, its key if it has just one, and whether it has any.
    fn order(&mut self, expression: &dyn WindowExpr) -> Result<(Order, Option<RangeKey>, bool)> {
        let sorts = expression.order_by();
        let columns = sorts.iter().map(|sort| self.column(&sort.expr));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let key = match (sorts, &*columns) {
            ([sort], &[column]) => Some(RangeKey {
                column,
                data_type: self.type_of(&Source::Column(column)),
                options: sort.options,
            }),
            _ => None,
        };
        let has_order = !columns.is_empty();
        let known = self.orders.iter().position(|known| *known == columns);
        let number = known.unwrap_or_else(|| {
            self.orders.push(columns);
            self.orders.len() - 1
        });
        let order = Order { number };
        Ok((order, key, has_order))
    }

    fn function(&mut self, expression: &Arc<dyn WindowExpr>) -> Result<Option<FunctionSpec>> {
        let (order, key, has_order) = self.order(expression.as_ref())?;
        let window = expression.get_window_frame();
        let frame = FrameSpec::new(window, order, key.as_ref(), has_order);
        let any = expression.as_any();
        let plain = any.downcast_ref::<PlainAggregateWindowExpr>();
        let sliding = any.downcast_ref::<SlidingAggregateWindowExpr>();
        let aggregate = plain.map(PlainAggregateWindowExpr::get_aggregate_expr);
        let aggregate = aggregate.or(sliding.map(SlidingAggregateWindowExpr::get_aggregate_expr));
        if let Some(aggregate) = aggregate {
            let (Some(frame), false, false) =
                (frame, aggregate.is_distinct(), has_filter(expression))
            else {
                return Ok(None);
            };
            let arguments = expression.expressions();
            let arguments = arguments.iter().map(|argument| self.source(argument));
            let arguments = arguments.collect::<Result<Vec<_>>>()?;
            return Ok(Some(FunctionSpec::Aggregate {
                types: { arguments.iter() }.map(|it| self.type_of(it)).collect(),
                arguments,
                aggregate: Arc::new(aggregate.clone()),
                frame,
            }));
        }
        let standard = any.downcast_ref::<StandardWindowExpr>();
        let standard = standard.map(StandardWindowExpr::get_standard_func_expr);
        let call = standard.and_then(|call| call.as_any().downcast_ref::<WindowUDFExpr>());
        match call {
            Some(call) => self.call(expression, call, order, frame),
            None => Ok(None),
        }
    }

    fn call(
        &mut self,
        expression: &Arc<dyn WindowExpr>,
        call: &WindowUDFExpr,
        order: Order,
        frame: Option<FrameSpec>,
    ) -> Result<Option<FunctionSpec>> {
        let function = call.fun().inner();
        let ranking = match function.name() {
            "row_number" if function.is::<RowNumber>() => Some(Ranking::RowNumber),
            "rank" if function.is::<Rank>() => Some(Ranking::Rank),
            "dense_rank" if function.is::<Rank>() => Some(Ranking::DenseRank),
            "percent_rank" if function.is::<Rank>() => Some(Ranking::PercentRank),
            "cume_dist" if function.is::<CumeDist>() => Some(Ranking::CumeDist),
            "ntile" if function.is::<Ntile>() => match constant(call, 0) {
                Some(parts) => match parts.cast_to(&DataType::UInt64)? {
                    ScalarValue::UInt64(Some(parts)) if parts > 0 => Some(Ranking::Ntile(parts)),
                    _ => None,
                },
                None => None,
            },
            _ => None,
        };
        if let Some(kind) = ranking {
            return Ok(Some(FunctionSpec::Ranking { kind, order }));
        }
        let Some(is_reversed) = counts_nulls(call) else {
            return Ok(None);
        };
        let field = expression.field()?;
        let place = if let Some(shift) = function.downcast_ref::<WindowShift>() {
            shifted(call, shift.kind(), is_reversed, field.data_type())
        } else if let Some(nth) = function.downcast_ref::<NthValue>() {
            frame.and_then(|frame| of_frame(call, nth.kind(), is_reversed, frame))
        } else {
            None
        };
        let arguments = expression.expressions();
        let (Some(place), Some(value)) = (place, arguments.first()) else {
            return Ok(None);
        };
        let value = self.source(value)?;
        if self.type_of(&value) != *field.data_type() {
            return Ok(None);
        }
        Ok(Some(FunctionSpec::Value {
            value,
            field,
            place,
        }))
    }

    fn finish(self, partition_by: Vec<usize>, functions: Vec<FunctionSpec>) -> WindowSpec {
        let input_columns = self.input.fields().len();
        let mut fields: Vec<FieldRef> = self.input.fields().to_vec();
        for (number, data_type) in self.types.into_iter().enumerate() {
            let name = format!("computed_{number}");
            fields.push(Arc::new(Field::new(name, data_type, true)));
        }
        for number in 0..self.orders.len() {
            let name = format!("begins_peers_{number}");
            fields.push(Arc::new(Field::new(name, DataType::Boolean, false)));
        }
        WindowSpec {
            inner: Arc::new(Schema::new(fields)),
            computed: self.computed,
            partition_by,
            orders: self.orders,
            functions,
            input_columns,
        }
    }
}

/// Whether an aggregate has a condition of its own. DataFusion shows it nowhere else.
fn has_filter(expression: &Arc<dyn WindowExpr>) -> bool {
    !format!("{expression:?}").ends_with("filter: None }")
}

/// Whether the call was reversed to fit the order of its input; `None` if it leaves NULLs out.
/// DataFusion shows it nowhere else.
fn counts_nulls(call: &WindowUDFExpr) -> Option<bool> {
    let text = format!("{call:?}");
    let ends = |reversed: &str| {
        text.ends_with(&format!("is_reversed: {reversed}, ignore_nulls: false }}"))
    };
    match (ends("true"), ends("false")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// An argument that is a constant.
fn constant(call: &WindowUDFExpr, place: usize) -> Option<ScalarValue> {
    let literal = call.args().get(place)?.downcast_ref::<Literal>()?;
    Some(literal.value().clone())
}

/// An argument that is a whole number; NULL counts as zero, as it does in DataFusion.
fn whole_number(call: &WindowUDFExpr, place: usize) -> Option<i64> {
    let value = constant(call, place)?;
    if value.is_null() {
        return Some(0);
    }
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(number) if value.data_type().is_integer() => number,
        _ => None,
    }
}

/// The place of LAG and LEAD; none if an argument is no constant.
fn shifted(
    call: &WindowUDFExpr,
    kind: &WindowShiftKind,
    is_reversed: bool,
    data_type: &DataType,
) -> Option<ValuePlace> {
    let distance = match call.args().len() {
        0 | 1 => 1,
        _ => whole_number(call, 1)?,
    };
    let null = ScalarValue::try_from(data_type).ok()?;
    let default = match call.args().len() {
        0..=2 => null,
        _ => match constant(call, 2)? {
            value if value.is_null() => null,
            value => value.cast_to(data_type).ok()?,
        },
    };
    let looks_back = matches!(kind, WindowShiftKind::Lag) != is_reversed;
    let rows = match looks_back {
        true => distance.saturating_neg(),
        false => distance,
    };
    Some(ValuePlace::Shifted { rows, default })
}

/// The place of FIRST_VALUE, LAST_VALUE and NTH_VALUE.
fn of_frame(
    call: &WindowUDFExpr,
    kind: &NthValueKind,
    is_reversed: bool,
    frame: FrameSpec,
) -> Option<ValuePlace> {
    let number = match kind {
        NthValueKind::First => 1,
        NthValueKind::Last => -1,
        NthValueKind::Nth if is_reversed => whole_number(call, 1)?.checked_neg()?,
        NthValueKind::Nth => whole_number(call, 1)?,
    };
    let rows = number.unsigned_abs().saturating_sub(1);
    Some(match number {
        0 => ValuePlace::Nowhere,
        1.. => ValuePlace::FromStart { rows, frame },
        _ => ValuePlace::FromEnd { rows, frame },
    })
}
