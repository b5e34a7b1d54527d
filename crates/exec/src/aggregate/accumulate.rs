//! Aggregates without an inline state: DataFusion's accumulators, one partition at a time.
//!
//! The arguments of every row wait in their partition's pages; a partition is then read page by
//! page, its groups are numbered, and each function's vectorised accumulator is fed. Only one
//! partition's states are in memory. Where they do not fit, the partition is split.
//!
//! DISTINCT does not go through DataFusion's adapter, which keeps a boxed set a group: values
//! pass a second numbering of (group, value) first, and only new ones reach the plain function.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::{GroupsAccumulatorAdapter, PhysicalExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use mayfly_space::{Account, Error as SpaceError, Reservation};
use mayfly_table::rows::{
    GroupKeys, GroupNumbering, GroupReader, KeptRows, KeyColumn, PayloadColumn, PayloadRule,
    RowLayout,
};

use crate::error::{rows_error, space_error};

type Expr = Arc<dyn PhysicalExpr>;

/// Aggregates whose arguments are kept.
#[derive(Debug, Clone)]
pub(super) struct KeptRecipe {
    functions: Vec<Function>,
    exprs: Vec<Expr>,
    types: Vec<DataType>,
}

/// One aggregate of the recipe.
#[derive(Debug, Clone)]
struct Function {
    /// The function; without DISTINCT where `distinct` says that we see to it.
    aggregate: Arc<AggregateFunctionExpr>,
    /// Its arguments among the payload columns.
    arguments: Range<usize>,
    /// Its FILTER among the payload columns.
    filter: Option<usize>,
    distinct: bool,
}

impl KeptRecipe {
    /// The recipe; `None` where an argument cannot be held in a row.
    pub(super) fn try_new(
        first: &AggregateExec,
        arguments: Vec<Vec<Expr>>,
        schema: &Schema,
    ) -> Result<Option<KeptRecipe>> {
        let mut recipe = KeptRecipe {
            functions: Vec::new(),
            exprs: Vec::new(),
            types: Vec::new(),
        };
        let filters = first.filter_expr();
        for ((aggregate, arguments), filter) in first.aggr_expr().iter().zip(arguments).zip(filters)
        {
            let start = recipe.exprs.len();
            for expr in arguments {
                recipe.keep(expr, schema)?;
            }
            let end = recipe.exprs.len();
            let filter = match filter {
                Some(expr) => {
                    recipe.keep(Arc::clone(expr), schema)?;
                    Some(end)
                }
                None => None,
            };
            let distinct = aggregate.is_distinct() && aggregate.order_bys().is_empty();
            let aggregate = if distinct {
                without_distinct(aggregate, schema)?
            } else {
                Arc::clone(aggregate)
            };
            let arguments = start..end;
            recipe.functions.push(Function {
                aggregate,
                arguments,
                filter,
                distinct,
            });
        }
        let holds = recipe.types.iter().all(RowLayout::supports);
        Ok(holds.then_some(recipe))
    }

    fn keep(&mut self, expr: Expr, schema: &Schema) -> Result<()> {
        self.types.push(expr.data_type(schema)?);
        self.exprs.push(expr);
        Ok(())
    }

    /// The payload of the row layout.
    pub(super) fn payload(&self) -> Vec<PayloadColumn> {
        let rule = PayloadRule::First;
        self.types
            .iter()
            .map(|t| PayloadColumn {
                data_type: t.clone(),
                nullable: true,
                rule,
            })
            .collect()
    }

    /// The kept columns of one batch.
    pub(super) fn payload_columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let rows = batch.num_rows();
        self.exprs
            .iter()
            .map(|expr| expr.evaluate(batch)?.into_array(rows))
            .collect()
    }
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

/// Reads the parts of a set that kept its rows.
pub(super) struct KeptReader {
    groups: GroupReader,
    recipe: KeptRecipe,
    key_columns: Vec<KeyColumn>,
    account: Account,
    batch_rows: usize,
    emitting: Option<Emitting>,
}

/// A part whose results are on their way out.
struct Emitting {
    keys: GroupKeys,
    results: Vec<ArrayRef>,
    emitted: usize,
    _memory: Reservation,
}

/// Whether a part could be aggregated in the memory there is.
enum Attempt {
    Done(Emitting),
    Short { groups: usize },
}

impl KeptReader {
    pub(super) fn new(
        groups: GroupReader,
        recipe: KeptRecipe,
        key_columns: Vec<KeyColumn>,
        account: Account,
        batch_rows: usize,
    ) -> KeptReader {
        KeptReader {
            groups,
            recipe,
            key_columns,
            account,
            batch_rows,
            emitting: None,
        }
    }

    /// The next result rows; `None` at the end.
    pub(super) fn next_batch(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(emitting) = &mut self.emitting {
                match emitting.next_batch(schema, self.batch_rows)? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.emitting = None,
                }
            }
            let Some(part) = self.groups.next_kept_rows().map_err(rows_error)? else {
                return Ok(None);
            };
            match self.aggregate(&part)? {
                Attempt::Done(emitting) => self.emitting = Some(emitting),
                Attempt::Short { groups } if groups > 1 => {
                    let parts = part.split().map_err(rows_error)?;
                    self.groups.give_back(parts);
                }
                Attempt::Short { .. } => return Err(space_error(self.one_group_too_large())),
            }
        }
    }

    fn one_group_too_large(&self) -> SpaceError {
        let limit_bytes = self.account.space().memory_bytes();
        SpaceError::BudgetExceeded {
            asked_bytes: limit_bytes,
            available_bytes: 0,
            limit_bytes,
        }
    }

    fn aggregate(&self, part: &KeptRows) -> Result<Attempt> {
        let page_class = self.account.space().default_page_class();
        let numbering = GroupNumbering::new(
            &self.key_columns,
            &self.account,
            page_class,
            part.level_bits(),
        );
        let Some(mut numbering) = numbering.map_err(rows_error)? else {
            return Ok(Attempt::Short { groups: 2 });
        };
        let mut feeds = Vec::with_capacity(self.recipe.functions.len());
        for function in &self.recipe.functions {
            match self.feed(function)? {
                Some(feed) => feeds.push(feed),
                None => return Ok(Attempt::Short { groups: 2 }),
            }
        }
        let mut memory = self.account.reserve(0).map_err(space_error)?;
        for page in 0..part.page_count() {
            let Some(batch) = part.read_page(page, &mut numbering).map_err(rows_error)? else {
                return Ok(Attempt::Short {
                    groups: numbering.groups(),
                });
            };
            let groups = numbering.groups();
            for feed in &mut feeds {
                if !feed.update(&batch.numbers, &batch.payload, groups)? {
                    return Ok(Attempt::Short { groups });
                }
            }
            let states: usize = feeds.iter().map(|feed| feed.accumulator.size()).sum();
            match memory.try_resize(states as u64) {
                Ok(()) => {}
                Err(SpaceError::BudgetExceeded { .. }) => return Ok(Attempt::Short { groups }),
                Err(error) => return Err(space_error(error)),
            }
        }
        let results = feeds
            .iter_mut()
            .map(|feed| feed.accumulator.evaluate(EmitTo::All))
            .collect::<Result<Vec<_>>>()?;
        let keys = numbering.into_keys();
        Ok(Attempt::Done(Emitting {
            keys,
            results,
            emitted: 0,
            _memory: memory,
        }))
    }

    fn feed(&self, function: &Function) -> Result<Option<Feed>> {
        let seen = if function.distinct {
            let group = KeyColumn {
                data_type: DataType::UInt32,
                nullable: false,
            };
            let values = self.recipe.types[function.arguments.clone()].iter();
            let values = values.map(|data_type| KeyColumn {
                data_type: data_type.clone(),
                nullable: true,
            });
            let columns: Vec<KeyColumn> = std::iter::once(group).chain(values).collect();
            let page_class = self.account.space().default_page_class();
            match GroupNumbering::new(&columns, &self.account, page_class, 0).map_err(rows_error)? {
                Some(seen) => Some(seen),
                None => return Ok(None),
            }
        } else {
            None
        };
        let accumulator = new_accumulator(&function.aggregate)?;
        Ok(Some(Feed {
            function: function.clone(),
            accumulator,
            seen,
        }))
    }
}

fn new_accumulator(aggregate: &Arc<AggregateFunctionExpr>) -> Result<Box<dyn GroupsAccumulator>> {
    if aggregate.groups_accumulator_supported() {
        return aggregate.create_groups_accumulator();
    }
    let aggregate = Arc::clone(aggregate);
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || {
        aggregate.create_accumulator()
    })))
}

/// One function with its states.
struct Feed {
    function: Function,
    accumulator: Box<dyn GroupsAccumulator>,
    /// The (group, value) pairs that went by, for DISTINCT.
    seen: Option<GroupNumbering>,
}

impl Feed {
    /// Feeds the rows of one page; false where memory is short.
    fn update(&mut self, numbers: &[u32], payload: &[ArrayRef], groups: usize) -> Result<bool> {
        let values = &payload[self.function.arguments.clone()];
        let condition = self
            .function
            .filter
            .map(|at| payload[at].as_boolean().clone());
        let Some(seen) = &mut self.seen else {
            let indices: Vec<usize> = numbers.iter().map(|n| *n as usize).collect();
            self.accumulator
                .update_batch(values, &indices, condition.as_ref(), groups)?;
            return Ok(true);
        };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(values.len() + 1);
        columns.push(Arc::new(UInt32Array::from(numbers.to_vec())));
        columns.extend(values.iter().cloned());
        if let Some(condition) = &condition {
            for column in &mut columns {
                *column = filter(column, condition)?;
            }
        }
        let rows = columns[0].len();
        let mut next = seen.groups() as u32;
        let mut pairs = Vec::with_capacity(rows);
        if !seen
            .assign(rows, &columns, &mut pairs)
            .map_err(rows_error)?
        {
            return Ok(false);
        }
        let is_new = |pair: &u32| {
            let new = *pair == next;
            next += u32::from(new);
            Some(new)
        };
        let new: BooleanArray = pairs.iter().map(is_new).collect();
        for column in &mut columns {
            *column = filter(column, &new)?;
        }
        let numbers = columns.remove(0);
        let numbers = numbers.as_primitive::<datafusion::arrow::datatypes::UInt32Type>();
        let indices: Vec<usize> = numbers.values().iter().map(|n| *n as usize).collect();
        self.accumulator
            .update_batch(&columns, &indices, None, groups)?;
        Ok(true)
    }
}

impl Emitting {
    fn next_batch(&mut self, schema: &SchemaRef, rows_max: usize) -> Result<Option<RecordBatch>> {
        let Some(groups) = self.keys.next_batch(rows_max).map_err(rows_error)? else {
            return Ok(None);
        };
        let mut columns = groups.key;
        for result in &self.results {
            columns.push(result.slice(self.emitted, groups.rows));
        }
        self.emitted += groups.rows;
        let options = RecordBatchOptions::new().with_row_count(Some(groups.rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        Ok(Some(batch))
    }
}
