//! How many rows a part of a plan has, and how many values a column: from statistics and guesses.
//!
//! Owns: the guesses. They rank plans and nothing else: a wrong one costs time, never a row.
//!
//! Files know the least and the largest value of a column, tables of ours their number of rows.
//! What is left is guessed as databases have done since System R (Selinger et al., SIGMOD 1979).

use std::sync::Arc;

use datafusion::common::{ColumnStatistics, JoinType, Result, ScalarValue, Statistics};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, Literal, NotExpr,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use crate::aggregate::AggregateOperator;
use crate::exchange;
use crate::filter::filter_of;
use crate::join::EitherJoin;
use crate::padding::ForgetConstants;

type Expr = Arc<dyn PhysicalExpr>;

/// The part of the rows that a condition leaves, where nothing is known.
const UNKNOWN: f64 = 0.3;
const EQUAL: f64 = 0.05;
const BETWEEN_BOUNDS: f64 = 0.3;
const NULLS: f64 = 0.05;
/// A column is a key of its table if so many of its values differ.
const UNIQUE: f64 = 0.9;
/// No condition leaves less.
const LEAST: f64 = 1e-6;

/// Guesses about parts of one plan, which is there as long as they are. What DataFusion knows of a
/// node is found out once.
#[derive(Default)]
pub(crate) struct Estimates {
    statistics: StatisticsContext,
}

impl Estimates {
    /// What is known of the rows of a plan: `None` where nothing is.
    pub(crate) fn rows(&self, plan: &dyn ExecutionPlan) -> Result<Option<f64>> {
        if let Some(filter) = filter_of(plan) {
            let Some(rows) = self.rows(filter.input().as_ref())? else {
                return Ok(None);
            };
            return Ok(Some(
                rows * self.selectivity(filter.predicate(), filter.input())?,
            ));
        }
        if let Some((keys, input)) = grouping(plan) {
            let Some(rows) = self.rows(input.as_ref())? else {
                return Ok(None);
            };
            let mut groups = 1.0;
            for (key, _) in keys.expr() {
                groups *= self.values_of(key, input, rows)?;
            }
            return Ok(Some(rows.min(groups)));
        }
        if let Some(input) = same_rows(plan) {
            return self.rows(input.as_ref());
        }
        if let Some(join) = EitherJoin::of(plan) {
            return self.of_join(&join);
        }
        let statistics = self.statistics(plan)?;
        Ok(statistics.num_rows.get_value().map(|rows| *rows as f64))
    }

    fn of_join(&self, join: &EitherJoin<'_>) -> Result<Option<f64>> {
        let (left, right) = (join.left, join.right);
        let (Some(of_left), Some(of_right)) =
            (self.rows(left.as_ref())?, self.rows(right.as_ref())?)
        else {
            return Ok(None);
        };
        let mut pairs = of_left * of_right;
        for (one, two) in join.stock.on() {
            let (one, two) = (self.origin_of(left, one)?, self.origin_of(right, two)?);
            pairs *= equality((one, of_left), (two, of_right));
        }
        Ok(Some(match join.stock.join_type() {
            JoinType::Inner => pairs,
            JoinType::Left => pairs.max(of_left),
            JoinType::Right => pairs.max(of_right),
            JoinType::Full => pairs.max(of_left).max(of_right),
            JoinType::LeftSemi => pairs.min(of_left),
            JoinType::RightSemi => pairs.min(of_right),
            JoinType::LeftAnti | JoinType::LeftMark => of_left,
            JoinType::RightAnti | JoinType::RightMark => of_right,
        }))
    }

    /// How many groups the rows of a plan make by some keys, at most; `None` where nothing is known
    /// of one of them.
    pub(crate) fn groups(
        &self,
        keys: &[Expr],
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<f64>> {
        let mut groups = 1.0;
        for key in keys {
            let known = match key.downcast_ref::<Column>() {
                Some(column) => self.known_of(column, input)?,
                None => None,
            };
            match known.as_ref().and_then(values) {
                Some(values) => groups *= values,
                None => return Ok(None),
            }
        }
        Ok(Some(groups))
    }

    /// The origin of an expression over a plan, if it is a column.
    fn origin_of(&self, plan: &Arc<dyn ExecutionPlan>, expr: &Expr) -> Result<Option<Origin>> {
        match expr.downcast_ref::<Column>() {
            Some(column) => self.origin(plan.as_ref(), column.index()),
            None => Ok(None),
        }
    }

    /// The origin of a column of a plan; `None` where nothing is known of it.
    pub(crate) fn origin(&self, plan: &dyn ExecutionPlan, column: usize) -> Result<Option<Origin>> {
        let Some((source, column)) = source_of(plan, column) else {
            return Ok(None);
        };
        let Some(rows) = self.rows(source)? else {
            return Ok(None);
        };
        let known = self.statistics(source)?;
        let values = known.column_statistics.get(column).and_then(values);
        Ok(Some(Origin {
            rows,
            values: values.unwrap_or(rows).min(rows).max(1.0),
        }))
    }

    /// The statistics of a node by itself.
    fn statistics(&self, plan: &dyn ExecutionPlan) -> Result<Arc<Statistics>> {
        self.statistics.compute(plan, &StatisticsArgs::new())
    }

    /// How many values an expression has among so many rows.
    fn values_of(&self, expr: &Expr, input: &Arc<dyn ExecutionPlan>, rows: f64) -> Result<f64> {
        let origin = self.origin_of(input, expr)?;
        Ok(origin.map_or(rows, |origin| origin.values.min(rows)))
    }

    /// The part of the rows of `input` that a condition leaves.
    fn selectivity(&self, condition: &Expr, input: &Arc<dyn ExecutionPlan>) -> Result<f64> {
        let left = match condition.downcast_ref::<BinaryExpr>() {
            Some(binary) => self.of_binary(binary, input)?,
            None => self.of_other(condition, input)?,
        };
        Ok(left.clamp(LEAST, 1.0))
    }

    fn of_binary(&self, binary: &BinaryExpr, input: &Arc<dyn ExecutionPlan>) -> Result<f64> {
        let (left, right) = (binary.left(), binary.right());
        match binary.op() {
            Operator::And => Ok(self.selectivity(left, input)? * self.selectivity(right, input)?),
            Operator::Or => {
                let (one, two) = (
                    self.selectivity(left, input)?,
                    self.selectivity(right, input)?,
                );
                Ok(one + two - one * two)
            }
            operator => match (
                left.downcast_ref::<Column>(),
                right.downcast_ref::<Literal>(),
            ) {
                (Some(column), Some(value)) => self.compared(column, *operator, value, input),
                _ => Ok(match operator {
                    Operator::Eq => EQUAL,
                    Operator::NotEq => 1.0 - EQUAL,
                    _ => UNKNOWN,
                }),
            },
        }
    }

    fn of_other(&self, condition: &Expr, input: &Arc<dyn ExecutionPlan>) -> Result<f64> {
        if let Some(not) = condition.downcast_ref::<NotExpr>() {
            return Ok(1.0 - self.selectivity(not.arg(), input)?);
        }
        if let Some(list) = condition.downcast_ref::<InListExpr>() {
            let each = self.equal(list.expr().downcast_ref(), input)?;
            let any = (each * list.list().len() as f64).min(1.0);
            return Ok(if list.negated() { 1.0 - any } else { any });
        }
        if let Some(value) = condition.downcast_ref::<Literal>() {
            let holds = matches!(value.value(), ScalarValue::Boolean(Some(true)));
            return Ok(if holds { 1.0 } else { 0.0 });
        }
        Ok(match condition {
            condition if condition.is::<IsNullExpr>() => NULLS,
            condition if condition.is::<IsNotNullExpr>() => 1.0 - NULLS,
            _ => UNKNOWN,
        })
    }

    /// The part of the rows that have one value of a column, or of something else.
    fn equal(&self, column: Option<&Column>, input: &Arc<dyn ExecutionPlan>) -> Result<f64> {
        let known = match column {
            Some(column) => self.known_of(column, input)?,
            None => None,
        };
        let values = known.as_ref().and_then(values);
        Ok(values.map_or(EQUAL, |values| 1.0 / values.max(1.0)))
    }

    fn compared(
        &self,
        column: &Column,
        operator: Operator,
        value: &Literal,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<f64> {
        let equal = || self.equal(Some(column), input);
        let below = || -> Result<Option<f64>> {
            let known = self.known_of(column, input)?;
            let bounds = known.as_ref().and_then(bounds);
            Ok(match (bounds, number(value.value())) {
                (Some((least, largest)), Some(value)) if least < largest => {
                    Some(((value - least) / (largest - least)).clamp(0.0, 1.0))
                }
                _ => None,
            })
        };
        Ok(match operator {
            Operator::Eq => equal()?,
            Operator::NotEq => 1.0 - equal()?,
            Operator::Lt | Operator::LtEq => below()?.unwrap_or(BETWEEN_BOUNDS),
            Operator::Gt | Operator::GtEq => below()?.map_or(BETWEEN_BOUNDS, |below| 1.0 - below),
            _ => UNKNOWN,
        })
    }

    /// What is known of a column where it comes from.
    fn known_of(
        &self,
        column: &Column,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<ColumnStatistics>> {
        let Some((source, place)) = source_of(input.as_ref(), column.index()) else {
            return Ok(None);
        };
        Ok(self
            .statistics(source)?
            .column_statistics
            .get(place)
            .cloned())
    }
}

/// The part of pairs that an equality leaves: values of the one side are among those of the other,
/// and if one of them is a key, it has all there are.
///
/// Sides are told by their origin and how many rows they have.
pub(crate) fn equality(one: (Option<Origin>, f64), two: (Option<Origin>, f64)) -> f64 {
    let (mut most, mut keys) = (1.0_f64, f64::INFINITY);
    for (origin, rows) in [one, two] {
        most = most.max(origin.map_or(rows, |origin| origin.values));
        if let Some(key) = origin.filter(Origin::is_key) {
            keys = keys.min(key.values);
        }
    }
    1.0 / most.min(keys)
}

/// A column where it comes from: how many rows there are before conditions, and values among them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) rows: f64,
    pub(crate) values: f64,
}

impl Origin {
    /// Whether the column looks like a key of its table.
    pub(crate) fn is_key(&self) -> bool {
        self.values >= UNIQUE * self.rows
    }
}

/// The input of a node that neither drops nor adds rows.
fn same_rows(plan: &dyn ExecutionPlan) -> Option<&Arc<dyn ExecutionPlan>> {
    let keeps = plan.is::<ProjectionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<ForgetConstants>()
        || exchange::is_exchange(plan);
    keeps.then(|| plan.children().first().copied()).flatten()
}

/// The node that a column is read by or computed in, and its place there.
fn source_of(plan: &dyn ExecutionPlan, column: usize) -> Option<(&dyn ExecutionPlan, usize)> {
    if let Some(filter) = filter_of(plan) {
        let column = match filter.projection() {
            Some(projection) => *projection.get(column)?,
            None => column,
        };
        return source_of(filter.input().as_ref(), column);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let expr = &projection.expr().get(column)?.expr;
        let column = expr.downcast_ref::<Column>()?;
        return source_of(projection.input().as_ref(), column.index());
    }
    if let Some((keys, input)) = grouping(plan) {
        let (key, _) = keys.expr().get(column)?;
        let column = key.downcast_ref::<Column>()?;
        return source_of(input.as_ref(), column.index());
    }
    if let Some(join) = EitherJoin::of(plan) {
        return source_in_join(&join, column);
    }
    match same_rows(plan) {
        Some(input) => source_of(input.as_ref(), column),
        None => Some((plan, column)),
    }
}

/// The keys of a node that groups, and what it reads.
fn grouping(plan: &dyn ExecutionPlan) -> Option<(&PhysicalGroupBy, &Arc<dyn ExecutionPlan>)> {
    if let Some(stock) = plan.downcast_ref::<AggregateExec>() {
        return Some((stock.group_expr(), stock.input()));
    }
    let ours = plan.downcast_ref::<AggregateOperator>()?;
    Some((ours.group_by(), ours.input()))
}

fn source_in_join<'a>(
    join: &EitherJoin<'a>,
    column: usize,
) -> Option<(&'a dyn ExecutionPlan, usize)> {
    let column = match &join.stock.projection {
        Some(projection) => *projection.get(column)?,
        None => column,
    };
    let width = join.left.schema().fields().len();
    let (side, column) = match join.stock.join_type() {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (join.right, column),
        _ if column < width => (join.left, column),
        _ => (join.right, column - width),
    };
    (column < side.schema().fields().len()).then_some(())?;
    source_of(side.as_ref(), column)
}

/// How many values a column has at most, by what is known of it.
fn values(column: &ColumnStatistics) -> Option<f64> {
    if let Some(values) = column.distinct_count.get_value() {
        return Some(*values as f64);
    }
    let (least, largest) = bounds(column)?;
    let whole = column.min_value.get_value().is_some_and(is_whole);
    whole.then_some(largest - least + 1.0)
}

fn bounds(column: &ColumnStatistics) -> Option<(f64, f64)> {
    let least = number(column.min_value.get_value()?)?;
    let largest = number(column.max_value.get_value()?)?;
    (least <= largest).then_some((least, largest))
}

fn is_whole(value: &ScalarValue) -> bool {
    use ScalarValue::{Date32, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    matches!(
        value,
        Int8(_)
            | Int16(_)
            | Int32(_)
            | Int64(_)
            | UInt8(_)
            | UInt16(_)
            | UInt32(_)
            | UInt64(_)
            | Date32(_)
    )
}

/// A value as a number that orders it.
fn number(value: &ScalarValue) -> Option<f64> {
    use ScalarValue::*;
    Some(match value {
        Int8(Some(value)) => f64::from(*value),
        Int16(Some(value)) => f64::from(*value),
        Int32(Some(value)) | Date32(Some(value)) => f64::from(*value),
        Int64(Some(value)) | TimestampMicrosecond(Some(value), _) => *value as f64,
        UInt8(Some(value)) => f64::from(*value),
        UInt16(Some(value)) => f64::from(*value),
        UInt32(Some(value)) => f64::from(*value),
        UInt64(Some(value)) => *value as f64,
        Float32(Some(value)) => f64::from(*value),
        Float64(Some(value)) => *value,
        Decimal128(Some(value), _, scale) => *value as f64 / 10_f64.powi(i32::from(*scale)),
        _ => return None,
    })
}
