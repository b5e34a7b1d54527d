//! Values of correlated subqueries as columns that a join adds to the outer rows.
//!
//! Owns what the rules that do so have in common: the walk over the expressions of a plan, the
//! names of the inner columns, and which conditions find the rows of one value.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    Subquery,
};

use super::subquery_expressions::is_correlated;

/// Joins the rows of a subquery to the outer rows, and tells the value over both; `None` if it is
/// not its business.
pub(super) type Joins<'a> =
    &'a dyn Fn(&Subquery, &LogicalPlan) -> Result<Option<(LogicalPlan, Expr)>>;

/// A plan whose correlated values are columns.
pub(super) struct Joined {
    pub(super) plan: LogicalPlan,
    /// The columns that it had before, where it has more now.
    columns: Option<Vec<Expr>>,
}

impl Joined {
    /// The plan with the columns that it had.
    pub(super) fn restored(self) -> Result<LogicalPlan> {
        match self.columns {
            Some(columns) => LogicalPlanBuilder::from(self.plan)
                .project(columns)?
                .build(),
            None => Ok(self.plan),
        }
    }

    /// The plan after a change of it that leaves its columns alone.
    pub(super) fn map(
        self,
        change: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>,
    ) -> Result<Joined> {
        let plan = change(self.plan)?;
        Ok(Joined { plan, ..self })
    }
}

impl From<LogicalPlan> for Joined {
    fn from(plan: LogicalPlan) -> Joined {
        Joined {
            plan,
            columns: None,
        }
    }
}

/// A SELECT list or a condition whose correlated values are columns, as far as `joins` takes them;
/// those of a grouping stand in a list below it (`outside`).
pub(super) fn as_columns(plan: LogicalPlan, joins: Joins<'_>) -> Result<Joined> {
    match plan {
        LogicalPlan::Projection(projection) if has_correlated(&projection.expr)? => {
            let mut input = Arc::clone(&projection.input);
            let mut list = Vec::with_capacity(projection.expr.len());
            for expr in &projection.expr {
                list.push(named_as_before(expr, &mut input, joins)?);
            }
            if Arc::ptr_eq(&input, &projection.input) {
                return Ok(LogicalPlan::Projection(projection).into());
            }
            Ok(LogicalPlan::Projection(Projection::try_new(list, input)?).into())
        }
        LogicalPlan::Filter(filter) if has_correlated(std::slice::from_ref(&filter.predicate))? => {
            let mut input = Arc::clone(&filter.input);
            let predicate = with_columns(filter.predicate.clone(), &mut input, joins)?;
            if Arc::ptr_eq(&input, &filter.input) {
                return Ok(LogicalPlan::Filter(filter).into());
            }
            let columns = filter.input.schema().columns();
            let columns: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
            Ok(Joined {
                plan: LogicalPlan::Filter(Filter::try_new(predicate, input)?),
                columns: Some(columns),
            })
        }
        plan => Ok(plan.into()),
    }
}

/// An expression with columns for correlated values, under the name that it had.
fn named_as_before(expr: &Expr, input: &mut Arc<LogicalPlan>, joins: Joins<'_>) -> Result<Expr> {
    let name = expr.schema_name().to_string();
    let qualifier = expr.qualified_name().0;
    let changed = with_columns(expr.clone(), input, joins)?;
    let is_same = changed.schema_name().to_string() == name;
    Ok(match is_same {
        true => changed,
        false => changed.alias_qualified(qualifier, name),
    })
}

fn has_correlated(exprs: &[Expr]) -> Result<bool> {
    let is_correlated = |expr: &Expr| match expr {
        Expr::ScalarSubquery(subquery) => is_correlated(subquery),
        _ => false,
    };
    for expr in exprs {
        if expr.exists(|expr| Ok(is_correlated(expr)))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Replaces the correlated values of an expression by columns, which the input gains.
fn with_columns(expr: Expr, input: &mut Arc<LogicalPlan>, joins: Joins<'_>) -> Result<Expr> {
    let changed = expr.transform_down(|expr| {
        let Expr::ScalarSubquery(subquery) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let Some((plan, value)) = joins(subquery, input)? else {
            return Ok(Transformed::no(expr));
        };
        *input = Arc::new(plan);
        Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
    })?;
    Ok(changed.data)
}

/// The columns of the table under their new names.
pub(super) struct Renamed(pub(super) HashMap<Column, Expr>);

impl Renamed {
    /// An expression over joined rows: inner columns renamed, outer ones no longer outer.
    pub(super) fn apply(&self, expr: Expr) -> Result<Expr> {
        let inner = replaced(expr, &self.0)?;
        let all = inner.transform_up(|expr| {
            Ok(match expr {
                Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
                other => Transformed::no(other),
            })
        })?;
        Ok(all.data)
    }
}

/// An expression with its columns replaced.
pub(super) fn replaced(expr: Expr, meaning: &HashMap<Column, Expr>) -> Result<Expr> {
    let changed = expr.transform_up(|expr| {
        Ok(match &expr {
            Expr::Column(column) => match meaning.get(column) {
                Some(meaning) => Transformed::yes(meaning.clone()),
                None => Transformed::no(expr),
            },
            _ => Transformed::no(expr),
        })
    })?;
    Ok(changed.data)
}

/// Expressions in one that was inlined at most: `v + v` over `v + v` doubles at each level.
const INLINED_MAX: usize = 16 << 10;

/// An expression over a projection as one over its input; `None` if it would grow too large.
pub(super) fn inlined(expr: Expr, projection: &Projection) -> Option<Expr> {
    let columns = projection.schema.columns();
    let meaning: HashMap<&Column, &Expr> = columns.iter().zip(&projection.expr).collect();
    let mut count = 0;
    let mut add = |part: &Expr| {
        count += match part {
            Expr::Column(column) => meaning.get(column).map_or(1, |meant| size(meant)),
            _ => 1,
        };
        match count <= INLINED_MAX {
            true => Ok(TreeNodeRecursion::Continue),
            false => Ok(TreeNodeRecursion::Stop),
        }
    };
    expr.apply(&mut add).ok()?;
    if count > INLINED_MAX {
        return None;
    }
    let owned =
        |(column, meant): (&&Column, &&Expr)| ((*column).clone(), (*meant).clone().unalias());
    replaced(expr, &meaning.iter().map(owned).collect()).ok()
}

/// The number of expressions in one.
fn size(expr: &Expr) -> usize {
    let mut count = 0;
    let _never_fails = expr.apply(|_| {
        count += 1;
        Ok(TreeNodeRecursion::Continue)
    });
    count
}

/// The column of a table that a condition says the value of.
pub(super) fn equal_column<'a>(condition: &'a Expr, table: &DFSchema) -> Option<&'a Column> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = condition
    else {
        return None;
    };
    let (expr, value) = [(left, right), (right, left)]
        .into_iter()
        .find(|(_, value)| !value.any_column_refs())?;
    let (column, value_type) = match expr.as_ref() {
        Expr::Column(column) => (column, value.get_type(table).ok()?),
        Expr::Cast(cast) => {
            let Expr::Column(column) = cast.expr.as_ref() else {
                return None;
            };
            (column, cast.field.data_type().clone())
        }
        _ => return None,
    };
    let of_type = table.field_from_column(column).ok()?.data_type();
    is_told_apart(of_type, &value_type).then_some(column)
}

/// Whether values of a column stay different where they are compared with values of a type: those
/// of a large integer do not as a DOUBLE.
fn is_told_apart(column: &DataType, value: &DataType) -> bool {
    let is_exact = |of_type: &DataType| of_type.is_integer() || of_type.is_decimal();
    let is_floating = |of_type: &DataType| of_type.is_floating();
    let is_binary = |of_type: &DataType| of_type.is_binary() || *of_type == DataType::BinaryView;
    let both = |is_it: &dyn Fn(&DataType) -> bool| is_it(column) && is_it(value);
    let is_narrow = column.is_integer() && column.primitive_width() < Some(8);
    column == value
        || both(&is_exact)
        || both(&is_floating)
        || both(&DataType::is_string)
        || both(&DataType::is_temporal)
        || both(&is_binary)
        || is_narrow && is_floating(value)
}
