//! Takes a plan apart: the joins that stand upon each other, and what is below them.
//!
//! Read are inner, semi and anti joins by equalities, with what stands between them and only
//! chooses columns or drops rows. All else is a part of the graph, and may have joins of its own.

use std::sync::Arc;

use datafusion::common::{JoinSide, JoinType, NullEquality, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::graph::{Expr, Found, Part, Reducer};
use super::search::{PARTS_MAX, Tree};
use crate::other_columns::with_columns;
use crate::plan_node::column_of;

/// Below this there is nothing to choose that sides of a join do not choose.
const PARTS_MIN: usize = 3;

/// The joins that a plan begins with, under what is made of their columns; `None` if they are too
/// few, or too many.
pub(super) fn joins(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Found>> {
    let projection = plan.downcast_ref::<ProjectionExec>();
    let input = projection.map_or(plan, ProjectionExec::input);
    if !begins_with_join(input) {
        return Ok(None);
    }
    let mut reader = Reader {
        mode: PartitionMode::Auto,
        parts: Vec::new(),
        columns: 0,
        equalities: Vec::new(),
        conditions: Vec::new(),
    };
    let (tree, columns) = reader.node(input)?;
    if !(PARTS_MIN..=PARTS_MAX).contains(&reader.parts.len()) {
        return Ok(None);
    }
    let output = match projection {
        Some(projection) => projection.expr().to_vec(),
        None => { 0..input.schema().fields().len() }
            .map(|place| column_of(input.as_ref(), place))
            .collect(),
    };
    let output = output.into_iter().map(|column| {
        Ok(ProjectionExpr {
            expr: numbered(&column.expr, &columns)?,
            alias: column.alias,
        })
    });
    Ok(Some(Found {
        output: output.collect::<Result<_>>()?,
        parts: reader.parts,
        equalities: reader.equalities,
        conditions: reader.conditions,
        tree,
        mode: reader.mode,
    }))
}

struct Reader {
    mode: PartitionMode,
    parts: Vec<Part>,
    columns: usize,
    equalities: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
}

/// A tree of joins and the numbers of its columns.
type Joined = (Tree, Vec<usize>);

impl Reader {
    fn node(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<Joined> {
        if !begins_with_join(plan) {
            return Ok(self.part(plan, None));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let (tree, columns) = self.node(projection.input())?;
            let chosen = projection.expr().iter();
            let chosen = chosen.filter_map(|it| it.expr.downcast_ref::<Column>());
            return Ok((tree, chosen.map(|column| columns[column.index()]).collect()));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let (tree, columns) = self.node(filter.input())?;
            self.condition(filter.predicate(), &columns)?;
            let columns = match filter.projection() {
                Some(projection) => projection.iter().map(|place| columns[*place]).collect(),
                None => columns,
            };
            return Ok((tree, columns));
        }
        match plan.downcast_ref::<HashJoinExec>() {
            Some(join) => self.join(join),
            None => Ok(self.part(plan, None)),
        }
    }

    fn join(&mut self, join: &HashJoinExec) -> Result<Joined> {
        self.mode = *join.partition_mode();
        let (left, mut columns) = self.node(join.left())?;
        let joined = match join.join_type() {
            JoinType::Inner => {
                let (right, of_right) = self.node(join.right())?;
                for (one, two) in join.on() {
                    let sides = (numbered(one, &columns)?, numbered(two, &of_right)?);
                    self.equalities.push(sides);
                }
                if let Some(filter) = join.filter() {
                    let filter = of_filter(filter, &columns, &of_right)?;
                    self.conditions
                        .extend(split_conjunction(&filter).into_iter().cloned());
                }
                columns.extend(of_right);
                Tree::join(left, right)
            }
            kind => {
                let first = self.columns;
                let width = join.right().schema().fields().len();
                let of_right: Vec<usize> = (first..first + width).collect();
                let on = join
                    .on()
                    .iter()
                    .map(|(one, two)| Ok((numbered(one, &columns)?, numbered(two, &of_right)?)));
                let reducer = Reducer {
                    is_anti: *kind == JoinType::LeftAnti,
                    on: on.collect::<Result<_>>()?,
                    filter: match join.filter() {
                        Some(filter) => Some(of_filter(filter, &columns, &of_right)?),
                        None => None,
                    },
                };
                let (right, _) = self.part(join.right(), Some(reducer));
                Tree::join(left, right)
            }
        };
        let columns = match &join.projection {
            Some(projection) => projection.iter().map(|place| columns[*place]).collect(),
            None => columns,
        };
        Ok((joined, columns))
    }

    fn part(&mut self, plan: &Arc<dyn ExecutionPlan>, reducer: Option<Reducer>) -> Joined {
        let first = self.columns;
        self.columns += plan.schema().fields().len();
        self.parts.push(Part {
            plan: Arc::clone(plan),
            first,
            reducer,
        });
        (
            Tree::Part(self.parts.len() - 1),
            (first..self.columns).collect(),
        )
    }

    fn condition(&mut self, condition: &Expr, columns: &[usize]) -> Result<()> {
        for part in split_conjunction(condition) {
            self.conditions.push(numbered(part, columns)?);
        }
        Ok(())
    }
}

/// Whether a plan is joins that are read, under what only chooses columns or drops rows.
pub(super) fn begins_with_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return is_ours(join);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let mut chosen = projection.expr().iter();
        return chosen.all(|it| it.expr.is::<Column>()) && begins_with_join(projection.input());
    }
    match plan.downcast_ref::<FilterExec>() {
        Some(filter) => filter.fetch().is_none() && begins_with_join(filter.input()),
        None => false,
    }
}

fn is_ours(join: &HashJoinExec) -> bool {
    let kinds = [JoinType::Inner, JoinType::LeftSemi, JoinType::LeftAnti];
    kinds.contains(join.join_type())
        && join.null_equality() == NullEquality::NullEqualsNothing
        && !join.null_aware
        && join.fetch().is_none()
}

/// An expression over the columns of a plan as one over numbers.
fn numbered(expr: &Expr, columns: &[usize]) -> Result<Expr> {
    with_columns(expr, |column| {
        Column::new(column.name(), columns[column.index()])
    })
}

fn of_filter(filter: &JoinFilter, left: &[usize], right: &[usize]) -> Result<Expr> {
    let columns = filter.column_indices();
    with_columns(filter.expression(), |column| {
        let place = &columns[column.index()];
        let number = match place.side {
            JoinSide::Right => right[place.index],
            _ => left[place.index],
        };
        Column::new(column.name(), number)
    })
}
