//! Views in queries.
//!
//! A view is planned by itself, in its own text, with the tables and modes of its own: whatever
//! stands in the query that names it means nothing inside. The plan then stands in the place of its
//! table, as that of a derived table would, so that all that is done with those is done with it.
//!
//! ```text
//!   FROM v AS x      SubqueryAlias x
//!                      SubqueryAlias v
//!                        SubqueryAlias <mark>v     the view begins: see `view_mark`
//!                          Projection              its columns under their names
//!                            ...                   the plan of its query
//! ```
//!
//! **Owns** the plan that a view becomes, and the text that defines it (`definition_text`).
//! **Never** looks a name up: the tables of a view are bound before.

mod definition_text;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::datasource::empty::EmptyTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::{self, Ident, Query, SetExpr};
use mayfly_types::{ErrorCode, MySqlError};

pub use self::definition_text::definition_text;
use crate::bindings::{Bindings, BoundTable, BoundView};
use crate::change::only_table;
use crate::planning::extent_of_view;
use crate::rewrite::merged::is_merged;
use crate::select_list::{column, expression_of};
use crate::source::Source;
use crate::view_mark::mark;

/// What a view is made of.
pub struct ViewParts {
    /// Its database and its name.
    pub name: (String, String),
    /// Its query.
    pub query: Query,
    /// The text of the query.
    pub source: Source,
    /// What the query names.
    pub bindings: Bindings,
    /// Whether it is never merged into the query that names it.
    pub is_apart: bool,
}

impl BoundView {
    /// A view with what its query names.
    pub fn new(parts: ViewParts) -> BoundView {
        let ViewParts {
            name,
            query,
            source,
            bindings,
            is_apart,
        } = parts;
        let (tables, depth) = extent_of_view(&query, &bindings);
        BoundView {
            tables,
            depth,
            is_merged: !is_apart && is_merged(&query, &bindings),
            name,
            query,
            source,
            bindings,
        }
    }

    /// Whether it is a part of the query that names it: one row for each row of its tables.
    pub fn is_merged(&self) -> bool {
        self.is_merged
    }

    /// The view as a table of a statement; `columns` are the names of its columns.
    pub fn into_table(self, columns: Vec<String>) -> BoundTable {
        BoundTable {
            // Its types are those of its plan, which nobody has made yet.
            provider: Arc::new(EmptyTable::new(Arc::new(Schema::empty()))),
            unique: self.unique(&columns),
            columns,
            invisible: Vec::new(),
            view: Some(Arc::new(self)),
        }
    }

    /// The unique keys of its only table, in the columns of the view that show them.
    fn unique(&self, columns: &[String]) -> Vec<Vec<String>> {
        let SetExpr::Select(select) = self.query.body.as_ref() else {
            return Vec::new();
        };
        if !self.is_merged || self.query.with.is_some() {
            return Vec::new();
        }
        let bound = only_table(&select.from).and_then(|mention| {
            let name = mention.table;
            self.bindings.table(name.database.as_deref(), &name.table)
        });
        let items: Vec<&ast::Expr> = select.projection.iter().filter_map(expression_of).collect();
        if items.len() != columns.len() {
            return Vec::new();
        }
        let shown = |key: &String| {
            let is_it = |item: &&ast::Expr| {
                let name = column(item).and_then(<[Ident]>::last);
                name.is_some_and(|name| name.value.to_lowercase() == *key)
            };
            let place = items.iter().position(is_it)?;
            Some(columns.get(place)?.to_lowercase())
        };
        let keys = bound.map(|bound| bound.unique.as_slice());
        let keys = keys.unwrap_or_default().iter();
        keys.filter_map(|key| key.iter().map(shown).collect())
            .collect()
    }

    /// The plan of its query as the table that the view is.
    ///
    /// # Errors
    /// [`InvalidView`] if the query has not as many columns as the view.
    pub(crate) fn table(
        &self,
        plan: LogicalPlan,
        columns: &[String],
    ) -> Result<Arc<dyn TableProvider>> {
        if plan.schema().fields().len() != columns.len() {
            let cause = MySqlError::new(ErrorCode::ViewWrongList, &[]);
            return Err(self.invalid(DataFusionError::External(Box::new(cause))));
        }
        let named = columns.iter().enumerate().map(|(place, name)| {
            let column = Column::from(plan.schema().qualified_field(place));
            Expr::Column(column).alias(name.to_lowercase())
        });
        let named: Vec<Expr> = named.collect();
        let (database, view) = &self.name;
        let plan = LogicalPlanBuilder::from(plan).project(named)?;
        let plan = plan.alias(mark(database, view))?.build()?;
        let schema = Arc::new(plan.schema().as_arrow().clone());
        Ok(Arc::new(ViewTable { plan, schema }))
    }

    /// An error of the view's own query as one of the statement that names the view.
    pub(crate) fn invalid(&self, cause: DataFusionError) -> DataFusionError {
        if let DataFusionError::External(inner) = &cause
            && inner.is::<InvalidView>()
        {
            // The innermost of several is the one that is wrong.
            return cause;
        }
        DataFusionError::External(Box::new(InvalidView {
            name: self.name.clone(),
            cause,
        }))
    }
}

/// Why a view cannot be planned.
#[derive(Debug)]
pub struct InvalidView {
    /// Its database and its name.
    pub name: (String, String),
    /// The error of its query.
    pub cause: DataFusionError,
}

impl fmt::Display for InvalidView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (database, view) = &self.name;
        write!(f, "view {database}.{view}: {}", self.cause)
    }
}

impl std::error::Error for InvalidView {}

/// A view as DataFusion's planner reads it: a table that is a plan.
struct ViewTable {
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl fmt::Debug for ViewTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ViewTable")
    }
}

#[async_trait]
impl TableProvider for ViewTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let what = "a scan of a view, whose plan stands in its place";
        Err(DataFusionError::Internal(what.to_owned()))
    }
}
