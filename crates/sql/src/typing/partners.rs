//! The rows of a subquery that belong to an outer row, and whether there are any.
//!
//! The stock rules move conditions with outer columns above a subquery, but not past a derived
//! table, whose columns they do not extend, and they confuse a column of the subquery with one of
//! the outer rows that has the same name. [`Partners`] takes a subquery apart down to what names no
//! outer column, gives the columns names of their own, and puts the conditions directly above:
//!
//! ```text
//! EXISTS (SELECT 1 FROM (SELECT * FROM b WHERE b.x = a.x) d WHERE d.y > a.y)
//! EXISTS (Filter: inner.0 = a.x AND inner.1 > a.y  over  b AS inner)
//! ```
//!
//! Only tests are put so, which do not ask how often a row is there.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Column, DFSchema, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::utils::{split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Distinct, Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Subquery,
};

use super::except::is_set_operation;
use super::joined::{inlined, replaced};
use super::subquery_expressions::{has_correlated, has_subquery};

/// The table name of the inner rows, before a number.
const PARTNERS: &str = "mayfly partners";

/// The rows of a subquery, taken apart.
pub(super) struct Partners {
    /// What names no outer column.
    input: LogicalPlan,
    /// The conditions over the columns of the input, and of outer rows.
    conditions: Vec<Expr>,
    /// The columns of the subquery over those of the input.
    values: Vec<Expr>,
}

impl Partners {
    /// Takes a subquery apart; `None` if it has another shape.
    pub(super) fn of(plan: &LogicalPlan) -> Result<Option<Partners>> {
        Self::numbered(plan, &mut 0)
    }

    fn numbered(plan: &LogicalPlan, tables: &mut usize) -> Result<Option<Partners>> {
        let Some(partners) = Self::taken_apart(plan, tables)? else {
            return Ok(None);
        };
        for expr in partners.conditions.iter().chain(&partners.values) {
            if has_correlated(expr)? {
                return Ok(None);
            }
        }
        *tables += 1;
        partners.renamed(*tables).map(Some)
    }

    fn taken_apart(plan: &LogicalPlan, tables: &mut usize) -> Result<Option<Partners>> {
        let mut values = columns_of(plan);
        let mut conditions = Vec::new();
        let mut plan = plan;
        while !plan.all_out_ref_exprs().is_empty() {
            let mut meaning = None;
            plan = match plan {
                LogicalPlan::Projection(projection) => {
                    for expr in values.iter_mut().chain(&mut conditions) {
                        let Some(inner) = inlined(expr.clone(), projection) else {
                            return Ok(None);
                        };
                        *expr = inner;
                    }
                    projection.input.as_ref()
                }
                LogicalPlan::SubqueryAlias(alias) => {
                    let outside = alias.schema.columns().into_iter();
                    meaning = Some(outside.zip(columns_of(&alias.input)).collect());
                    alias.input.as_ref()
                }
                LogicalPlan::Distinct(Distinct::All(input)) => input.as_ref(),
                LogicalPlan::Sort(sort) if sort.fetch.is_none() => sort.input.as_ref(),
                LogicalPlan::Filter(filter) => {
                    if filter.input.all_out_ref_exprs().is_empty() {
                        return Self::over(filter, conditions, values);
                    }
                    if has_subquery(&filter.predicate)? {
                        return Ok(None);
                    }
                    conditions.push(filter.predicate.clone());
                    filter.input.as_ref()
                }
                LogicalPlan::Join(join) if is_set_operation(join) => {
                    return Self::of_set_operation(join, conditions, values, tables);
                }
                LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
                    return Self::of_join(join, conditions, values, tables);
                }
                _ => return Ok(None),
            };
            if let Some(meaning) = meaning {
                replace_all(values.iter_mut().chain(&mut conditions), &meaning)?;
            }
        }
        Ok(Some(Partners {
            input: plan.clone(),
            conditions,
            values,
        }))
    }

    /// What is left when the last condition with outer columns has been reached.
    fn over(
        filter: &Filter,
        mut conditions: Vec<Expr>,
        values: Vec<Expr>,
    ) -> Result<Option<Partners>> {
        let (of_both, of_inner): (Vec<&Expr>, Vec<&Expr>) = split_conjunction(&filter.predicate)
            .into_iter()
            .partition(|condition| condition.contains_outer());
        for condition in of_both {
            if has_subquery(condition)? {
                return Ok(None);
            }
            conditions.push(condition.clone());
        }
        let mut input = LogicalPlanBuilder::from(filter.input.as_ref().clone());
        if let Some(condition) = of_inner.into_iter().cloned().reduce(Expr::and) {
            input = input.filter(condition)?;
        }
        Ok(Some(Partners {
            input: input.build()?,
            conditions,
            values,
        }))
    }

    /// EXCEPT and INTERSECT keep or drop a left row by its values alone, so that conditions on left
    /// rows may come after them.
    fn of_set_operation(
        join: &Join,
        mut conditions: Vec<Expr>,
        mut values: Vec<Expr>,
        tables: &mut usize,
    ) -> Result<Option<Partners>> {
        if !join.right.all_out_ref_exprs().is_empty() {
            return Ok(None);
        }
        let Some(left) = Self::numbered(&join.left, tables)? else {
            return Ok(None);
        };
        if left.values.iter().any(Expr::contains_outer) {
            return Ok(None);
        }
        let meaning: HashMap<Column, Expr> = { join.left.schema().columns().into_iter() }
            .zip(left.values)
            .collect();
        let mut names = (Vec::new(), Vec::new());
        let mut list = columns_of(&left.input);
        for (index, (key, right)) in join.on.iter().enumerate() {
            let Expr::Column(right) = right else {
                return Ok(None);
            };
            let name = format!("mayfly compared {index}");
            list.push(replaced(key.clone(), &meaning)?.alias(&name));
            names.0.push(Column::new_unqualified(name));
            names.1.push(right.clone());
        }
        let input = LogicalPlanBuilder::from(left.input)
            .project(list)?
            .join_detailed(
                join.right.as_ref().clone(),
                join.join_type,
                names,
                None,
                NullEquality::NullEqualsNull,
            )?
            .build()?;
        replace_all(values.iter_mut().chain(&mut conditions), &meaning)?;
        conditions.extend(left.conditions);
        Ok(Some(Partners {
            input,
            conditions,
            values,
        }))
    }

    /// The rows of a join, of which conditions are asked for later.
    fn of_join(
        join: &Join,
        mut conditions: Vec<Expr>,
        mut values: Vec<Expr>,
        tables: &mut usize,
    ) -> Result<Option<Partners>> {
        let left = Self::numbered(&join.left, tables)?;
        let (Some(left), Some(right)) = (left, Self::numbered(&join.right, tables)?) else {
            return Ok(None);
        };
        let of_join = { join.on.iter() }
            .map(|(left, right)| left.clone().eq(right.clone()))
            .chain(join.filter.clone());
        for condition in of_join {
            if has_subquery(&condition)? {
                return Ok(None);
            }
            conditions.push(condition);
        }
        let columns = join.left.schema().columns().into_iter();
        let columns = columns.chain(join.right.schema().columns());
        let meaning = columns
            .zip(left.values.into_iter().chain(right.values))
            .collect();
        replace_all(values.iter_mut().chain(&mut conditions), &meaning)?;
        conditions.extend(left.conditions.into_iter().chain(right.conditions));
        let conditions = conditions.into_iter().flat_map(split_conjunction_owned);
        let (conditions, of_join): (Vec<Expr>, Vec<Expr>) =
            conditions.partition(Expr::contains_outer);
        let input = LogicalPlanBuilder::from(left.input)
            .join_on(right.input, JoinType::Inner, of_join)?
            .build()?;
        Ok(Some(Partners {
            input,
            conditions,
            values,
        }))
    }

    /// The same rows, with columns that have the name of no outer one.
    fn renamed(self, table: usize) -> Result<Partners> {
        let table = format!("{PARTNERS} {table}");
        let columns = self.input.schema().columns();
        let mut list = Vec::with_capacity(columns.len());
        let mut names = HashMap::new();
        for (index, column) in columns.into_iter().enumerate() {
            let name = format!("column {index}");
            list.push(Expr::Column(column.clone()).alias(&name));
            names.insert(
                column,
                Expr::Column(Column::new(Some(table.as_str()), name)),
            );
        }
        let input = LogicalPlanBuilder::from(self.input)
            .project(list)?
            .alias(table.as_str())?
            .build()?;
        let renamed = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
            { exprs.into_iter() }
                .map(|expr| replaced(expr, &names))
                .collect()
        };
        Ok(Partners {
            conditions: renamed(self.conditions)?,
            values: renamed(self.values)?,
            input,
        })
    }

    /// The first column of the subquery.
    pub(super) fn value(&self) -> Option<&Expr> {
        self.values.first()
    }

    /// The columns that conditions name.
    pub(super) fn schema(&self) -> &DFSchema {
        self.input.schema()
    }

    /// The rows that a further condition is true for.
    fn rows(&self, condition: Option<Expr>) -> Result<LogicalPlan> {
        let conditions = self.conditions.iter().cloned().chain(condition);
        let rows = LogicalPlanBuilder::from(self.input.clone());
        match conditions.reduce(Expr::and) {
            Some(condition) => rows.filter(condition)?.build(),
            None => rows.build(),
        }
    }

    /// Whether there is a row that a further condition is true for.
    pub(super) fn exists(&self, condition: Option<Expr>, like: &Subquery) -> Result<Expr> {
        let plan = self.rows(condition)?;
        Ok(Expr::Exists(Exists {
            subquery: Subquery {
                outer_ref_columns: plan.all_out_ref_exprs(),
                subquery: Arc::new(plan),
                spans: like.spans.clone(),
            },
            negated: false,
        }))
    }
}

fn replace_all<'a>(
    exprs: impl Iterator<Item = &'a mut Expr>,
    meaning: &HashMap<Column, Expr>,
) -> Result<()> {
    for expr in exprs {
        *expr = replaced(std::mem::take(expr), meaning)?;
    }
    Ok(())
}

fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    let columns = plan.schema().columns();
    columns.into_iter().map(Expr::Column).collect()
}
