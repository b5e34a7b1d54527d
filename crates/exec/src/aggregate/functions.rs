//! Aggregate functions without an inline state: which columns they read, row by row or as distinct
//! values.
//!
//! Owns [`Functions`], the recipe of both `accumulate` (rows of groups are kept) and `whole` (all
//! rows are one group). Never: holds a value.
//!
//! What several functions read is evaluated and kept once. DISTINCT does not go through
//! DataFusion's adapter, which keeps a boxed set a group: values that differ are found in our own
//! tables, and the plain function is fed with those.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::AggregateExec;
use mayfly_table::rows::{PayloadColumn, PayloadRule, RowLayout};

type Expr = Arc<dyn PhysicalExpr>;

/// Functions over columns that are computed from the input.
#[derive(Debug, Clone)]
pub(super) struct Functions {
    pub(super) list: Vec<Function>,
    /// What DISTINCT functions read, each once.
    pub(super) tuples: Vec<Tuple>,
    columns: Vec<Column>,
}

/// One aggregate function.
#[derive(Debug, Clone)]
pub(super) struct Function {
    /// The function; without DISTINCT where its source sees to it.
    pub(super) aggregate: Arc<AggregateFunctionExpr>,
    pub(super) source: Source,
}

/// What a function is fed with.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Every row.
    Rows(Tuple),
    /// The distinct values of one of [`Functions::tuples`].
    Distinct(usize),
}

/// Arguments of a function, under a condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tuple {
    arguments: Vec<Argument>,
    /// The column that says which rows count.
    filter: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
enum Argument {
    Column(usize),
    /// The same for every row: nothing is kept.
    Constant(ScalarValue),
}

/// A column that is computed from the input.
#[derive(Debug, Clone)]
struct Column {
    expr: Expr,
    data_type: DataType,
    /// The column that says for which rows it may be computed at all.
    filter: Option<usize>,
}

impl Functions {
    /// The functions of an aggregate whose arguments are these; `None` where a row cannot hold one.
    pub(super) fn try_new(
        first: &AggregateExec,
        arguments: Vec<Vec<Expr>>,
        schema: &Schema,
    ) -> Result<Option<Functions>> {
        let mut functions = Functions {
            list: Vec::new(),
            tuples: Vec::new(),
            columns: Vec::new(),
        };
        let filters = first.filter_expr();
        for ((aggregate, exprs), filter) in first.aggr_expr().iter().zip(arguments).zip(filters) {
            let filter = match filter {
                Some(expr) => Some(functions.column(expr, None, schema)?),
                None => None,
            };
            let distinct = is_ours(aggregate);
            let mut arguments = Vec::with_capacity(exprs.len());
            for expr in exprs {
                arguments.push(match expr.downcast_ref::<Literal>() {
                    Some(literal) if !distinct => Argument::Constant(literal.value().clone()),
                    _ => Argument::Column(functions.column(&expr, filter, schema)?),
                });
            }
            let tuple = Tuple { arguments, filter };
            let function = if distinct {
                Function {
                    aggregate: without_distinct(aggregate, schema)?,
                    source: Source::Distinct(functions.tuple(tuple)),
                }
            } else {
                Function {
                    aggregate: Arc::clone(aggregate),
                    source: Source::Rows(tuple),
                }
            };
            functions.list.push(function);
        }
        let mut types = functions.columns.iter().map(|column| &column.data_type);
        let holds = types.all(RowLayout::supports);
        Ok(holds.then_some(functions))
    }

    /// The number of a column, which several functions may read.
    fn column(&mut self, expr: &Expr, filter: Option<usize>, schema: &Schema) -> Result<usize> {
        let same = |column: &Column| column.filter == filter && column.expr.eq(expr);
        if let Some(found) = self.columns.iter().position(same)
            && !is_volatile(expr)
        {
            return Ok(found);
        }
        self.columns.push(Column {
            expr: Arc::clone(expr),
            data_type: expr.data_type(schema)?,
            filter,
        });
        Ok(self.columns.len() - 1)
    }

    fn tuple(&mut self, tuple: Tuple) -> usize {
        if let Some(found) = self.tuples.iter().position(|other| *other == tuple) {
            return found;
        }
        self.tuples.push(tuple);
        self.tuples.len() - 1
    }

    /// The columns as the payload of a row that is kept.
    pub(super) fn payload(&self) -> Vec<PayloadColumn> {
        let column = |column: &Column| PayloadColumn {
            data_type: column.data_type.clone(),
            nullable: true,
            rule: PayloadRule::First,
        };
        self.columns.iter().map(column).collect()
    }

    /// The columns of one batch of input.
    pub(super) fn evaluate(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            // A condition stands before the columns that depend on it.
            let value = match column.filter {
                Some(filter) => {
                    let selection = columns[filter].as_boolean();
                    column.expr.evaluate_selection(batch, selection)?
                }
                None => column.expr.evaluate(batch)?,
            };
            columns.push(value.into_array(batch.num_rows())?);
        }
        Ok(columns)
    }

    /// The types of a tuple's values, one for each argument.
    pub(super) fn types_of(&self, tuple: &Tuple) -> Vec<DataType> {
        let data_type = |argument: &Argument| match argument {
            Argument::Column(column) => self.columns[*column].data_type.clone(),
            Argument::Constant(value) => value.data_type(),
        };
        tuple.arguments.iter().map(data_type).collect()
    }
}

impl Tuple {
    /// The rows that count.
    pub(super) fn condition<'a>(&self, columns: &'a [ArrayRef]) -> Option<&'a BooleanArray> {
        self.filter.map(|filter| columns[filter].as_boolean())
    }

    /// The values of all `rows` rows, whether they count or not.
    pub(super) fn values(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<ArrayRef>> {
        let value = |argument: &Argument| match argument {
            Argument::Column(column) => Ok(Arc::clone(&columns[*column])),
            Argument::Constant(value) => value.to_array_of_size(rows),
        };
        self.arguments.iter().map(value).collect()
    }
}

/// The rows of all columns at which `condition` is true.
pub(super) fn select(columns: &mut [ArrayRef], condition: &BooleanArray) -> Result<()> {
    if condition.null_count() > 0 || condition.has_false() {
        for column in columns {
            *column = filter(column, condition)?;
        }
    }
    Ok(())
}

/// Whether we find the distinct values of a function; with an order it sees to them itself.
pub(super) fn is_ours(aggregate: &AggregateFunctionExpr) -> bool {
    aggregate.is_distinct() && aggregate.order_bys().is_empty()
}

fn without_distinct(
    aggregate: &AggregateFunctionExpr,
    schema: &Schema,
) -> Result<Arc<AggregateFunctionExpr>> {
    let function = Arc::new(aggregate.fun().clone());
    let plain = AggregateExprBuilder::new(function, aggregate.expressions())
        .schema(Arc::new(schema.clone()))
        .alias(aggregate.name())
        .with_ignore_nulls(aggregate.ignore_nulls())
        .build()?;
    Ok(Arc::new(plain))
}
