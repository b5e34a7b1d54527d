//! Which columns of tables the columns of a result show: what a client is told beside their labels.
//!
//! A column that a query hands on has an origin, one that it computes has none, nor has one of a
//! UNION, an INTERSECT or an EXCEPT. A column that depends on what is grouped, and stands in a plan
//! as `any_value(c) AS c`, is handed on too. Looks at plans as they come from the planner, before
//! any rule has changed them.

use datafusion::common::TableReference;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::bindings::FILES;
use crate::functions::any_value;
use crate::functions::own::MARK;
use crate::handed_on::handed_on;
use crate::inner_name;
use crate::statement::TableName;
use crate::stored::{self, Stored};
use crate::typing::except::is_set_operation;
use crate::view_mark;

/// The column of a table, or of a derived one, that a column of a result shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The database of the table or the view; `None` for the current one, and for a derived table.
    pub database: Option<String>,
    /// The name of the table, in lower case; that of a derived table is its alias.
    pub table: String,
    /// What the statement calls the table.
    pub alias: String,
    /// The name of the column, in lower case.
    pub column: String,
    /// Whether the table is a derived one: a subquery in FROM, a common table expression or a view.
    pub is_derived: bool,
    /// Whether it shows the value of one row of a group: what the plan computes may be NULL, also
    /// where the column may not.
    pub is_of_group: bool,
}

impl Origin {
    /// The name of the table; `None` for a derived one.
    pub fn table_name(&self) -> Option<TableName> {
        (!self.is_derived).then(|| TableName {
            database: self.database.clone(),
            table: self.table.clone(),
        })
    }
}

/// What a result's columns show, one entry for each of them.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    of_columns: Vec<Option<Origin>>,
    /// What clients are told of those that are computed.
    computed: Vec<Option<Stored>>,
}

impl Origins {
    pub(crate) fn of_plan(plan: &LogicalPlan) -> Origins {
        let places = 0..plan.schema().fields().len();
        let of_columns: Vec<_> = places.map(|place| origin(plan, place)).collect();
        // A derived table may compute it.
        let is_computed = |place: usize| {
            of_columns[place]
                .as_ref()
                .is_none_or(|origin: &Origin| origin.is_derived || origin.is_of_group)
        };
        let computed = stored::computed(plan, &is_computed);
        Origins {
            of_columns,
            computed,
        }
    }

    /// The column of a table that each column shows, if it does.
    pub fn iter(&self) -> impl Iterator<Item = &Option<Origin>> {
        self.of_columns.iter()
    }

    /// The same for columns some of which are computed beside the plan, which says nothing of them.
    #[must_use]
    pub fn of_tables_only(&self) -> Origins {
        Origins {
            of_columns: self.of_columns.clone(),
            computed: Vec::new(),
        }
    }

    /// What MySQL would say of a column that is computed.
    pub fn computed(&self, place: usize) -> Option<&Stored> {
        self.computed.get(place)?.as_ref()
    }
}

fn origin(plan: &LogicalPlan, place: usize) -> Option<Origin> {
    match plan {
        LogicalPlan::Projection(projection) => of_expr(&projection.expr[place], &projection.input),
        LogicalPlan::Aggregate(aggregate) => {
            of_expr(aggregate.group_expr.get(place)?, &aggregate.input)
        }
        LogicalPlan::Join(join) if is_set_operation(join) => None,
        LogicalPlan::SubqueryAlias(named) => {
            if let Some((database, view)) = view_mark::named(named) {
                return Some(Origin {
                    database: Some(database.to_owned()),
                    table: view.to_owned(),
                    alias: view.to_owned(),
                    column: plan.schema().field(place).name().clone(),
                    is_derived: true,
                    is_of_group: false,
                });
            }
            let alias = inner_name::shown(named.alias.table()).to_owned();
            let is_table = matches!(named.input.as_ref(), LogicalPlan::TableScan(_));
            if is_table || view_mark::named_by(&named.input).is_some() {
                let inner = origin(&named.input, place)?;
                return Some(Origin { alias, ..inner });
            }
            Some(Origin {
                database: None,
                table: alias.clone(),
                alias,
                column: plan.schema().field(place).name().clone(),
                is_derived: true,
                is_of_group: false,
            })
        }
        LogicalPlan::TableScan(scan) => {
            let (database, table) = match &scan.table_name {
                TableReference::Partial { schema, .. } if schema.as_ref() == FILES => return None,
                TableReference::Bare { table } => (None, table),
                TableReference::Partial { schema, table }
                | TableReference::Full { schema, table, .. } => (Some(schema.to_string()), table),
            };
            Some(Origin {
                database,
                table: table.to_string(),
                alias: table.to_string(),
                column: plan.schema().field(place).name().clone(),
                is_derived: false,
                is_of_group: false,
            })
        }
        plan => {
            let (below, place) = handed_on(plan, place)?;
            origin(below, place)
        }
    }
}

fn of_expr(expr: &Expr, input: &LogicalPlan) -> Option<Origin> {
    match expr {
        Expr::Alias(alias) => match of_group(&alias.expr, input) {
            Some(origin) => {
                // `ANY_VALUE(c)` that the statement says has another name.
                let is_handed_on = alias.name == origin.column || alias.name.starts_with(MARK);
                is_handed_on.then_some(origin)
            }
            None => of_expr(&alias.expr, input),
        },
        Expr::Column(column) => origin(input, input.schema().maybe_index_of_column(column)?),
        _ => None,
    }
}

/// The origin of a column of which an aggregate below takes the value of any row.
fn of_group(expr: &Expr, input: &LogicalPlan) -> Option<Origin> {
    let Expr::Column(column) = expr else {
        return None;
    };
    let place = input.schema().maybe_index_of_column(column)?;
    let mut plan = input;
    while let LogicalPlan::Filter(_) | LogicalPlan::Sort(_) = plan {
        plan = plan.inputs().into_iter().next()?;
    }
    let LogicalPlan::Aggregate(aggregate) = plan else {
        return None;
    };
    if let [Expr::GroupingSet(_)] = aggregate.group_expr.as_slice() {
        return None;
    }
    let place = place.checked_sub(aggregate.group_expr.len())?;
    let Expr::AggregateFunction(call) = aggregate.aggr_expr.get(place)? else {
        return None;
    };
    let [value @ Expr::Column(_)] = call.params.args.as_slice() else {
        return None;
    };
    if call.func.name() != any_value::NAME {
        return None;
    }
    Some(Origin {
        is_of_group: true,
        ..of_expr(value, &aggregate.input)?
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::Column;
    use datafusion::logical_expr::{LogicalPlanBuilder, col, table_scan};

    use super::*;

    fn scan(name: &str) -> LogicalPlanBuilder {
        let fields = ["id", "n"].map(|name| Field::new(name, DataType::Int64, true));
        table_scan(Some(name), &Schema::new(fields.to_vec()), None).unwrap()
    }

    fn shown(plan: &LogicalPlan) -> Vec<String> {
        let origins = Origins::of_plan(plan).of_columns.into_iter();
        let shown = origins.map(|origin| match origin {
            Some(Origin {
                alias,
                table,
                column,
                ..
            }) => format!("{alias}={table}.{column}"),
            None => "none".to_owned(),
        });
        shown.collect()
    }

    #[test]
    fn columns_that_are_handed_on_have_an_origin() {
        let plan = scan("t").alias("a").unwrap();
        let list = vec![col("a.n").alias("x"), col("a.n") + col("a.id")];
        let plan = plan.project(list).unwrap().limit(0, Some(1)).unwrap();
        assert_eq!(shown(&plan.build().unwrap()), ["a=t.n", "none"]);
    }

    #[test]
    fn tables_of_one_name_are_shown_by_it() {
        let plan = scan("t").alias(inner_name::inner("t", 3)).unwrap();
        assert_eq!(shown(&plan.build().unwrap()), ["t=t.id", "t=t.n"]);
    }

    #[test]
    fn those_of_derived_tables_are_theirs() {
        let inner = scan("t").project(vec![col("t.id").alias("x")]).unwrap();
        let plan = inner.alias("d").unwrap().build().unwrap();
        assert_eq!(shown(&plan), ["d=d.x"]);
        assert!(
            Origins::of_plan(&plan).of_columns[0]
                .as_ref()
                .unwrap()
                .is_derived
        );
    }

    #[test]
    fn those_of_set_operations_have_none() {
        let side = || scan("t").build().unwrap();
        let plan = LogicalPlanBuilder::intersect(side(), side(), false).unwrap();
        assert_eq!(shown(&plan), ["none", "none"]);
        let plan = LogicalPlanBuilder::except(side(), side(), true).unwrap();
        assert_eq!(shown(&plan), ["none", "none"]);
        let plan = scan("t").union(side()).unwrap().build().unwrap();
        assert_eq!(shown(&plan), ["none", "none"]);
    }

    #[test]
    fn both_sides_of_a_join_and_the_keys_of_groups() {
        let right = scan("u").build().unwrap();
        let plan = scan("t").cross_join(right).unwrap();
        let keys = vec![col("u.n"), col("t.id")];
        let plan = plan.aggregate(
            keys,
            vec![datafusion::functions_aggregate::sum::sum(col("t.n"))],
        );
        let plan = plan.unwrap().build().unwrap();
        assert_eq!(shown(&plan), ["u=u.n", "t=t.id", "none"]);
    }

    #[test]
    fn columns_that_depend_on_what_is_grouped() {
        let value = || any_value::any_value().call(vec![col("t.n")]);
        let plan = scan("t").aggregate(vec![col("t.id")], vec![value()]);
        let found = || Expr::Column(Column::from_name(value().schema_name().to_string()));
        let list = vec![
            found().alias("n"),
            found().alias("any_value(n)"),
            col("t.id").alias("n again"),
        ];
        let plan = plan.unwrap().project(list).unwrap().build().unwrap();
        assert_eq!(shown(&plan), ["t=t.n", "none", "t=t.id"]);
        let origins = Origins::of_plan(&plan);
        let of_group = { origins.iter().flatten() }.map(|origin| origin.is_of_group);
        assert_eq!(of_group.collect::<Vec<_>>(), [true, false]);
        assert!(
            origins
                .computed(0)
                .is_some_and(|computed| computed.nullable)
        );
        assert!(origins.computed(2).is_none());
    }
}
