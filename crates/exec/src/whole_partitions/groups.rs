//! The join of rows with the groups of their partitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, JoinOn, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::windows::WindowAggExec;
use mayfly_table::rows::RowLayout;

use super::read_again::ReadAgain;
use super::repeatable::{is_repeatable, repeated};
use super::stack::InputColumns;
use crate::other_columns::with_columns;
use crate::plan_node::column_of;
use crate::window::{are_same_keys, whole_aggregates};

/// Aggregates over whole partitions.
pub(super) struct WholePartitions {
    /// The keys, over the rows that the results are joined with.
    keys: Vec<PhysicalExprRef>,
    /// The keys over the input.
    input_keys: Vec<PhysicalExprRef>,
    /// The functions, and their arguments over the input.
    aggregates: Vec<(Arc<AggregateFunctionExpr>, Vec<PhysicalExprRef>)>,
}

impl WholePartitions {
    /// Those of a window whose keys are `input_keys` over the input; `None` if it has other
    /// functions, if they read more than the input, or if keys cannot be joined.
    pub(super) fn of(
        window: &Arc<dyn ExecutionPlan>,
        input_keys: &[PhysicalExprRef],
        columns: &InputColumns,
    ) -> Result<Option<Self>> {
        let Some(stock) = window.downcast_ref::<WindowAggExec>() else {
            return Ok(None);
        };
        let Some(functions) = whole_aggregates(stock)? else {
            return Ok(None);
        };
        let windows = stock.window_expr().first();
        let keys = windows.map_or(&[][..], |window| window.partition_by());
        for key in input_keys {
            let data_type = key.data_type(&columns.schema)?;
            // Minus zero is zero in a sort and to our join, and not to the stock one.
            let is_float = data_type.is_floating();
            let fits = data_type != DataType::Null && RowLayout::supports(&data_type);
            // Both readings compute it.
            if is_float || !fits || !is_repeatable(key) {
                return Ok(None);
            }
        }
        // Our join keeps all that is in a row, and the stock one in its place cannot spill.
        let of_window = stock.schema();
        let mut of_window = of_window.fields().iter();
        let fits = of_window.all(|field| RowLayout::supports(field.data_type()));
        if !keys.is_empty() && !fits {
            return Ok(None);
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
            input_keys: input_keys.to_vec(),
            aggregates,
        }))
    }

    /// The keys of the partitions, over the input.
    pub(super) fn input_keys(&self) -> &[PhysicalExprRef] {
        &self.input_keys
    }

    /// Whether rows are sorted by the same keys anyhow.
    pub(super) fn find_sorted(&self, sorted: &[Vec<PhysicalExprRef>]) -> bool {
        let keys = &self.input_keys;
        !keys.is_empty() && sorted.iter().any(|sorted| are_same_keys(sorted, keys))
    }

    /// The columns of `rows`, then the results for the partitions of `input`; `None` if that cannot
    /// be read once more.
    pub(super) fn join(
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
        let places: Vec<usize> = (of_groups..of_groups + width)
            .chain(keys..of_groups)
            .collect();
        let joined: Arc<dyn ExecutionPlan> = if keys == 0 {
            Arc::new(CrossJoinExec::new(groups, Arc::clone(rows)))
        } else {
            Arc::new(self.join_by_keys(groups, rows)?)
        };
        let columns = places
            .iter()
            .map(|place| column_of(joined.as_ref(), *place));
        let columns = columns.collect::<Vec<_>>();
        Ok(Some(Arc::new(ProjectionExec::try_new(columns, joined)?)))
    }

    fn join_by_keys(
        &self,
        groups: Arc<dyn ExecutionPlan>,
        rows: &Arc<dyn ExecutionPlan>,
    ) -> Result<HashJoinExec> {
        let schema = groups.schema();
        let on = self.keys.iter().enumerate().map(|(place, key)| {
            let group = Column::new(schema.field(place).name(), place);
            (Arc::new(group) as PhysicalExprRef, Arc::clone(key))
        });
        let on: JoinOn = on.collect();
        HashJoinExec::try_new(
            groups,
            Arc::clone(rows),
            on,
            None,
            &JoinType::Inner,
            None,
            PartitionMode::CollectLeft,
            NullEquality::NullEqualsNull,
            false,
        )
    }

    /// The groups: their keys, then the results.
    fn groups(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let arguments = self.aggregates.iter().flat_map(|(_, arguments)| arguments);
        let needed: BTreeSet<usize> = { arguments.flat_map(collect_columns) }
            .map(|column| column.index())
            .collect();
        let needed: Vec<usize> = needed.into_iter().collect();
        let keys = self.input_keys.iter().enumerate();
        let keys = keys.map(|(place, key)| ProjectionExpr {
            expr: Arc::clone(key),
            alias: format!("partition key {place}"),
        });
        let columns = needed.iter().map(|place| column_of(input.as_ref(), *place));
        let columns: Vec<_> = keys.chain(columns).collect();
        let input: Arc<dyn ExecutionPlan> =
            Arc::new(ProjectionExec::try_new(columns, Arc::clone(input))?);
        let schema = input.schema();
        let keys = (0..self.input_keys.len()).map(|place| {
            let key = column_of(input.as_ref(), place);
            (key.expr, key.alias)
        });
        let keys = PhysicalGroupBy::new_single(keys.collect());
        let moved = |expr: &PhysicalExprRef| {
            with_columns(expr, |column| {
                let place = needed.partition_point(|place| *place < column.index());
                Column::new(column.name(), self.input_keys.len() + place)
            })
        };
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
            Arc::new(ReadAgain::new(input)),
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
