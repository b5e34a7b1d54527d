//! The node of a subquery that runs for each row of its input.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{
    Column, DFSchema, DFSchemaRef, ExprSchema, Result, TableReference, internal_err,
};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use mayfly_exec::Yield;

/// The rows of the input, beside what a subquery has for each of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Apply {
    pub(super) input: LogicalPlan,
    pub(super) subquery: Subquery,
    schema: DFSchemaRef,
}

/// A subquery, which has been optimized.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subquery {
    pub(super) plan: LogicalPlan,
    /// The outer columns, each with the number of its placeholder in the plan.
    pub(super) outer: Vec<(usize, Column)>,
    /// Whether it may have another value for the same outer row.
    pub(super) varies: bool,
    pub(super) yields: Yield,
}

impl Apply {
    pub(super) fn over(input: LogicalPlan, subquery: Subquery) -> Result<Apply> {
        let schema = input.schema();
        let found = subquery.plan.schema().iter().map(|(table, field)| {
            let is_nullable = subquery.yields != Yield::Rows || field.is_nullable();
            let field = field.as_ref().clone().with_nullable(is_nullable);
            (table.cloned(), Arc::new(field))
        });
        let columns = { schema.iter() }
            .map(|(table, field)| (table.cloned(), Arc::clone(field)))
            .chain(found);
        let columns: Vec<(Option<TableReference>, FieldRef)> = columns.collect();
        let schema = DFSchema::new_with_metadata(columns, schema.as_arrow().metadata().clone())?;
        Ok(Apply {
            input,
            subquery,
            schema: Arc::new(schema),
        })
    }

    /// The one that a node is.
    pub(super) fn of(node: &LogicalPlan) -> Option<&Apply> {
        match node {
            LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
            _ => None,
        }
    }

    pub(super) fn into_node(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension {
            node: Arc::new(self),
        })
    }

    /// What is beside the columns of the input.
    pub(super) fn found(&self) -> Vec<Column> {
        let count = self.input.schema().fields().len();
        self.schema.columns().split_off(count)
    }

    /// The places of the outer columns among those of the input.
    pub(super) fn outer_places(&self) -> Result<Vec<usize>> {
        let outer = self.subquery.outer.iter();
        outer
            .map(|(_, column)| self.input.schema().index_of_column(column))
            .collect()
    }
}

impl PartialOrd for Apply {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Apply {
    fn name(&self) -> &str {
        "Apply"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let outer = self.subquery.outer.iter();
        outer
            .map(|(_, column)| Expr::Column(column.clone()))
            .collect()
    }

    /// A condition on the input alone is asked before the subquery runs.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.found().into_iter().map(|column| column.name).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outer: Vec<String> = { self.subquery.outer.iter() }
            .map(|(_, column)| column.flat_name())
            .collect();
        write!(f, "Apply: outer_columns=[{}]", outer.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([input]) = <[LogicalPlan; 1]>::try_from(inputs) else {
            return internal_err!("a subquery is applied to one input");
        };
        let mut subquery = self.subquery.clone();
        if exprs.len() != subquery.outer.len() {
            return internal_err!("a subquery names another number of outer columns");
        }
        for ((_, known), expr) in subquery.outer.iter_mut().zip(exprs) {
            let Expr::Column(column) = expr else {
                return internal_err!("{expr} is no outer column");
            };
            *known = column;
        }
        Apply::over(input, subquery)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let count = self.input.schema().fields().len();
        let shown = output_columns.iter().copied();
        let mut needed: Vec<usize> = shown.filter(|column| *column < count).collect();
        needed.extend(self.outer_places().ok()?);
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

/// The plan of the subquery that a node runs for each of its rows, if it is such a node.
pub fn applied_subquery(node: &LogicalPlan) -> Option<&LogicalPlan> {
    Apply::of(node).map(|apply| &apply.subquery.plan)
}

/// The field of a column as the rows of a plan have it.
pub(super) fn field_of(schema: &DFSchema, column: &Column) -> Option<FieldRef> {
    schema.field_from_column(column).ok().cloned()
}
