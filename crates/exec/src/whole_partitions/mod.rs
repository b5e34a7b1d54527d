//! Aggregates over whole partitions as joins: `SUM(v) OVER (PARTITION BY g)` is one value for each
//! `g`, which a join with the groups of `g` finds without sorting a row or keeping one.
//!
//! ```text
//!   Window: sum(v) by g <- input      Join: g is g
//!                                       |-- Aggregate: sum(v) by g <- what it needs of the input
//!                                       `-- input
//! ```
//!
//! The input is read twice, so it must be cheap to read: a table or a Parquet file, and what drops
//! rows of it or computes columns. Where it is more than that, where groups are nearly as many as
//! rows, and where another window wants the same partitions sorted, rows are sorted as they were.
//! Without PARTITION BY there is one group, and nothing to decide.
//!
//! **Never** changes rows. A guess that is wrong costs time.
//!
//! The rule runs when the sides of joins are chosen, and before anything is sorted: the groups are
//! the side that becomes a table. DuckDB does the same in its logical plan, and calls it a self
//! join of a window.

mod repeatable;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, JoinOn, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowExpr};
use mayfly_table::rows::RowLayout;

use self::repeatable::{is_cheap_to_repeat, repeated};
use crate::estimate::Estimates;
use crate::other_columns::with_columns;
use crate::plan_node::{chosen_columns, over_input};
use crate::window::whole_aggregates;

/// Fewer rows are sorted before another plan is made, and come in the order of their partitions.
const ROWS_MIN: f64 = 10_000.0;
/// With more groups than this part of the rows, a sort costs less than groups and a join ...
const GROUPS_MAX_PER_ROW: f64 = 0.25;
/// ... if they do not fit into this part of the budget.
const GROUPS_PER_MEMORY: f64 = 4.0;
/// What a group takes, about: a row of the aggregate, one of the join, and their directories.
const GROUP_BYTES: f64 = 128.0;

/// Joins rows with the groups of their partitions instead of sorting them.
#[derive(Debug)]
pub(crate) struct JoinWholePartitions {
    memory_bytes: u64,
}

impl JoinWholePartitions {
    /// The rule for plans that run in a budget.
    pub(crate) fn for_budget(memory_bytes: u64) -> Self {
        Self { memory_bytes }
    }
}

impl PhysicalOptimizerRule for JoinWholePartitions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let groups_max = self.memory_bytes as f64 / GROUPS_PER_MEMORY / GROUP_BYTES;
        plan.transform_down(|node| joined(node, groups_max, config))
            .data()
    }

    fn name(&self) -> &str {
        "join_whole_partitions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Windows that stand upon each other, and what chooses columns between them.
struct Stack {
    /// From the one at the bottom to the one on top.
    nodes: Vec<Arc<dyn ExecutionPlan>>,
    /// What they all read.
    input: Arc<dyn ExecutionPlan>,
}

impl Stack {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Stack {
        let mut nodes = Vec::new();
        let mut input = plan;
        while let Some(below) = input_of(input) {
            nodes.push(Arc::clone(input));
            input = below;
        }
        nodes.reverse();
        Stack {
            nodes,
            input: Arc::clone(input),
        }
    }
}

/// The input of a window, or of what chooses columns above one.
fn input_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if let Some((_, input)) = window_of(plan) {
        return Some(input);
    }
    let (input, _) = chosen_columns(plan.downcast_ref()?)?;
    input_of(input).map(|_| input)
}

/// The functions and the input of a window.
fn window_of(
    plan: &Arc<dyn ExecutionPlan>,
) -> Option<(&[Arc<dyn WindowExpr>], &Arc<dyn ExecutionPlan>)> {
    if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        return Some((window.window_expr(), window.input()));
    }
    let window = plan.downcast_ref::<BoundedWindowAggExec>()?;
    Some((window.window_expr(), window.input()))
}

/// A plan with joins in the place of windows that it begins with. Of `groups_max` groups there may
/// be as many as of rows.
fn joined(
    plan: Arc<dyn ExecutionPlan>,
    groups_max: f64,
    config: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if window_of(&plan).is_none() {
        return Ok(Transformed::no(plan));
    }
    let Stack { nodes, input } = Stack::of(&plan);
    let estimates = Estimates::default();
    let rows = match estimates.rows(input.as_ref())? {
        Some(rows) if rows >= ROWS_MIN && is_cheap_to_repeat(&input, rows, &estimates)? => rows,
        _ => return Ok(Transformed::no(plan)),
    };
    let mut columns = InputColumns::of(&input);
    let mut windows = Vec::with_capacity(nodes.len());
    for node in &nodes {
        windows.push(match window_of(node) {
            Some((functions, _)) => {
                let keys = functions.first().map_or(&[][..], |one| one.partition_by());
                let window = Window {
                    keys: columns.all(keys)?,
                    groups: WholePartitions::of(node, &columns)?,
                };
                columns.add_results(functions.len());
                Some(window)
            }
            None => {
                let chosen = node.downcast_ref().and_then(chosen_columns);
                columns.choose(&chosen.map_or(Vec::new(), |(_, chosen)| chosen));
                None
            }
        });
    }
    let groups_max = groups_max.max(GROUPS_MAX_PER_ROW * rows);
    for window in windows.iter_mut().flatten() {
        if let (Some(keys), Some(_)) = (&window.keys, &window.groups) {
            let groups = estimates.groups(keys, &input)?;
            if groups.is_some_and(|groups| groups > groups_max) {
                window.groups = None;
            }
        }
    }
    // Where rows are sorted for one of them, the others find them sorted.
    let sorted = windows.iter().flatten();
    let sorted = sorted.filter(|window| window.groups.is_none());
    let sorted: Vec<Vec<_>> = sorted.filter_map(|window| window.keys.clone()).collect();
    let mut result = Arc::clone(&input);
    let mut is_changed = false;
    for (node, window) in nodes.iter().zip(windows) {
        let groups = window.and_then(|window| window.groups);
        let groups = groups.filter(|groups| !groups.find_sorted(&sorted));
        let join = match groups {
            Some(groups) => groups.join(&input, &result, config)?,
            None => None,
        };
        // A function of other programs may describe its result in another way when it groups.
        let join = join.filter(|join| join.schema() == node.schema());
        is_changed |= join.is_some();
        result = match join {
            Some(join) => join,
            None => over_input(node, result)?,
        };
    }
    match is_changed {
        true => Ok(Transformed::yes(result)),
        false => Ok(Transformed::no(plan)),
    }
}

/// A window of a stack.
struct Window {
    /// The keys of its partitions, over the input of the stack; `None` if they are more than that.
    keys: Option<Vec<PhysicalExprRef>>,
    groups: Option<WholePartitions>,
}

/// Which columns of a stack are columns of its input.
struct InputColumns {
    schema: SchemaRef,
    places: Vec<Option<usize>>,
}

impl InputColumns {
    fn of(input: &Arc<dyn ExecutionPlan>) -> InputColumns {
        let schema = input.schema();
        InputColumns {
            places: (0..schema.fields().len()).map(Some).collect(),
            schema,
        }
    }

    /// Goes above a window.
    fn add_results(&mut self, count: usize) {
        self.places.extend(std::iter::repeat_n(None, count));
    }

    /// Goes above a projection.
    fn choose(&mut self, chosen: &[usize]) {
        self.places = chosen.iter().map(|place| self.places[*place]).collect();
    }

    /// Expressions over the input instead; `None` if one reads anything else, or gives something
    /// else each time.
    fn all(&self, exprs: &[PhysicalExprRef]) -> Result<Option<Vec<PhysicalExprRef>>> {
        let is_of_input = |expr: &PhysicalExprRef| {
            let mut columns = collect_columns(expr).into_iter();
            !is_volatile(expr) && columns.all(|column| self.places[column.index()].is_some())
        };
        if !exprs.iter().all(is_of_input) {
            return Ok(None);
        }
        let over_input = exprs.iter().map(|expr| {
            with_columns(expr, |column| {
                let place = self.places[column.index()].unwrap_or_default();
                Column::new(self.schema.field(place).name(), place)
            })
        });
        over_input.collect::<Result<_>>().map(Some)
    }
}

/// Aggregates over whole partitions.
struct WholePartitions {
    /// The keys, over the rows that the results are joined with.
    keys: Vec<PhysicalExprRef>,
    /// The keys over the input.
    input_keys: Vec<PhysicalExprRef>,
    /// The functions, and their arguments over the input.
    aggregates: Vec<(Arc<AggregateFunctionExpr>, Vec<PhysicalExprRef>)>,
}

impl WholePartitions {
    /// Those of a window; `None` if it has other functions, if they read more than the input, or if
    /// keys cannot be joined.
    fn of(window: &Arc<dyn ExecutionPlan>, columns: &InputColumns) -> Result<Option<Self>> {
        let Some(stock) = window.downcast_ref::<WindowAggExec>() else {
            return Ok(None);
        };
        let Some(functions) = whole_aggregates(stock)? else {
            return Ok(None);
        };
        let windows = stock.window_expr().first();
        let keys = windows.map_or(&[][..], |window| window.partition_by());
        let Some(input_keys) = columns.all(keys)? else {
            return Ok(None);
        };
        for key in &input_keys {
            let data_type = key.data_type(&columns.schema)?;
            // Minus zero is zero in a sort and to our join, and not to the stock one.
            let is_float = data_type.is_floating();
            if is_float || data_type == DataType::Null || !RowLayout::supports(&data_type) {
                return Ok(None);
            }
        }
        let mut aggregates = Vec::with_capacity(functions.len());
        for function in functions {
            match columns.all(&function.expressions())? {
                Some(arguments) => aggregates.push((function, arguments)),
                None => return Ok(None),
            }
        }
        Ok(Some(WholePartitions {
            keys: keys.to_vec(),
            input_keys,
            aggregates,
        }))
    }

    /// Whether rows are sorted by the same keys anyhow.
    fn find_sorted(&self, sorted: &[Vec<PhysicalExprRef>]) -> bool {
        let keys = &self.input_keys;
        let are_same = |sorted: &Vec<PhysicalExprRef>| {
            sorted.len() == keys.len() && sorted.iter().all(|key| keys.contains(key))
        };
        !keys.is_empty() && sorted.iter().any(are_same)
    }

    /// The columns of `rows`, then the results for the partitions of `input`; `None` if that cannot
    /// be read once more.
    fn join(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        rows: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(input) = repeated(input)? else {
            return Ok(None);
        };
        let groups = self.groups(&input, config)?;
        let (keys, results) = (self.keys.len(), self.aggregates.len());
        let width = rows.schema().fields().len();
        let of_groups = keys + results;
        let places = (of_groups..of_groups + width).chain(keys..of_groups);
        if keys == 0 {
            let pairs: Arc<dyn ExecutionPlan> =
                Arc::new(CrossJoinExec::new(groups, Arc::clone(rows)));
            let columns = places.map(|place| column_of(&pairs, place));
            let columns = columns.collect::<Vec<_>>();
            return Ok(Some(Arc::new(ProjectionExec::try_new(columns, pairs)?)));
        }
        let schema = groups.schema();
        let on = self.keys.iter().enumerate().map(|(place, key)| {
            let group = Column::new(schema.field(place).name(), place);
            (Arc::new(group) as PhysicalExprRef, Arc::clone(key))
        });
        let on: JoinOn = on.collect();
        let join = HashJoinExec::try_new(
            groups,
            Arc::clone(rows),
            on,
            None,
            &JoinType::Inner,
            Some(places.collect()),
            PartitionMode::CollectLeft,
            NullEquality::NullEqualsNull,
            false,
        )?;
        Ok(Some(Arc::new(join)))
    }

    /// The groups: their keys, then the results.
    fn groups(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let arguments = self.aggregates.iter().flat_map(|(_, arguments)| arguments);
        let read = self.input_keys.iter().chain(arguments);
        let needed: BTreeSet<usize> = { read.flat_map(collect_columns) }
            .map(|column| column.index())
            .collect();
        let needed: Vec<usize> = needed.into_iter().collect();
        let columns = needed.iter().map(|place| column_of(input, *place));
        let columns = columns.collect::<Vec<_>>();
        let input: Arc<dyn ExecutionPlan> =
            Arc::new(ProjectionExec::try_new(columns, Arc::clone(input))?);
        let schema = input.schema();
        let moved = |expr: &PhysicalExprRef| {
            with_columns(expr, |column| {
                let place = needed.partition_point(|place| *place < column.index());
                Column::new(column.name(), place)
            })
        };
        let keys = self.input_keys.iter().enumerate().map(|(place, key)| {
            let name = format!("partition key {place}");
            Ok((moved(key)?, name))
        });
        let keys = PhysicalGroupBy::new_single(keys.collect::<Result<_>>()?);
        let aggregates = self.aggregates.iter().map(|(aggregate, arguments)| {
            let arguments = arguments.iter().map(&moved).collect::<Result<Vec<_>>>()?;
            let function = Arc::new(aggregate.fun().clone());
            let moved = AggregateExprBuilder::new(function, arguments)
                .schema(Arc::clone(&schema))
                .alias(aggregate.name())
                .with_ignore_nulls(aggregate.ignore_nulls())
                .build()?;
            Ok(Arc::new(moved))
        });
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        let conditions = vec![None; aggregates.len()];
        let (mode, is_spread) = (
            AggregateMode::Partial,
            config.execution.target_partitions > 1,
        );
        let first = AggregateExec::try_new(
            mode,
            keys,
            aggregates,
            conditions.clone(),
            input,
            Arc::clone(&schema),
        )?;
        let mode = match is_spread && !self.keys.is_empty() {
            true => AggregateMode::FinalPartitioned,
            false => AggregateMode::Final,
        };
        let (keys, aggregates) = (first.group_expr().as_final(), first.aggr_expr().to_vec());
        let first = Arc::new(first);
        let last = AggregateExec::try_new(mode, keys, aggregates, conditions, first, schema)?;
        Ok(Arc::new(last))
    }
}

fn column_of(plan: &Arc<dyn ExecutionPlan>, place: usize) -> ProjectionExpr {
    let schema = plan.schema();
    let name = schema.field(place).name();
    ProjectionExpr {
        expr: Arc::new(Column::new(name, place)) as Arc<dyn PhysicalExpr>,
        alias: name.clone(),
    }
}
