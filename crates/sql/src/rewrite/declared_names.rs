//! How the columns of a plan are declared in the tables that they come from.
//!
//! Names are planned in lower case, and two tables may spell one name differently: `SELECT * FROM a
//! JOIN b` shows each column as its own table has it. Looks at plans as they come from the planner.

use datafusion::common::TableReference;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::bindings::Bindings;
use crate::functions::any_value;
use crate::handed_on::handed_on;
use crate::view_mark;

/// The spelling of the column at a place; `None` if it is no column of a table, or has another
/// name there.
pub(super) fn declared<'a>(
    plan: &LogicalPlan,
    place: usize,
    bindings: &'a Bindings,
) -> Option<&'a str> {
    let name = plan.schema().field(place).name();
    let (mut plan, mut place) = (plan, place);
    loop {
        (plan, place) = match plan {
            LogicalPlan::TableScan(scan) => {
                let place = match &scan.projection {
                    Some(places) => *places.get(place)?,
                    None => place,
                };
                let column = columns_of(&scan.table_name, bindings)?.get(place)?;
                return (column.to_lowercase() == *name).then_some(column);
            }
            LogicalPlan::Projection(projection) => {
                below(projection.expr.get(place)?, &projection.input)?
            }
            LogicalPlan::Aggregate(aggregate) => {
                if let [Expr::GroupingSet(_)] = aggregate.group_expr.as_slice() {
                    return None;
                }
                let mut exprs = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
                below(exprs.nth(place)?, &aggregate.input)?
            }
            LogicalPlan::SubqueryAlias(alias) if view_mark::named(alias).is_some() => {
                let (database, view) = view_mark::named(alias)?;
                let view = bindings.table(Some(database), view)?;
                let column = view.columns.get(place)?;
                return (column.to_lowercase() == *name).then_some(column);
            }
            // The first SELECT names the columns.
            LogicalPlan::Union(_) | LogicalPlan::SubqueryAlias(_) => {
                (plan.inputs().into_iter().next()?, place)
            }
            plan => handed_on(plan, place)?,
        };
    }
}

/// The column of a plan that an expression over it hands on.
fn below<'a>(mut expr: &Expr, input: &'a LogicalPlan) -> Option<(&'a LogicalPlan, usize)> {
    loop {
        expr = match expr {
            Expr::Alias(alias) => &alias.expr,
            // What depends on the groups.
            Expr::AggregateFunction(call) if call.func.name() == any_value::NAME => {
                call.params.args.first()?
            }
            Expr::Column(column) => {
                return Some((input, input.schema().maybe_index_of_column(column)?));
            }
            _ => return None,
        };
    }
}

/// The columns of a table as they were declared.
fn columns_of<'a>(table: &TableReference, bindings: &'a Bindings) -> Option<&'a [String]> {
    let bound = bindings.table_or_file(table.schema(), table.table())?;
    Some(&bound.columns)
}
