//! From a query to a logical plan.
//!
//! Owns the meeting of rewritten syntax, bindings and DataFusion's planner. Never reads a
//! catalog: every table has been bound before.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, TableReference};
use datafusion::datasource::{TableProvider, provider_as_source};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
};
use datafusion::sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast;
use mayfly_exec::WorkRows;
use mayfly_types::{ErrorCode, MySqlError};

use crate::bindings::{Bindings, BoundTable, BoundView};
use crate::functions::cast::keeping;
use crate::functions::{is_aggregate_name, scalar_function, scalar_names};
use crate::keyed::Keyed;
use crate::origin::Origins;
use crate::planning;
use crate::rewrite;
use crate::source::Source;
use crate::typing::{except, union};

/// A plan and the labels of its columns.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The plan; its analyzer has not run.
    pub plan: LogicalPlan,
    /// One label for each column.
    pub labels: Vec<String>,
    /// What each column shows.
    pub origins: Origins,
}

/// What planning needs of the outside.
#[derive(Clone, Copy)]
pub struct Planner<'a> {
    /// Functions, rules and options.
    pub state: &'a SessionState,
    /// Reads the types of CAST.
    pub type_planner: Option<&'a Arc<dyn TypePlanner>>,
    /// Tables and values.
    pub bindings: &'a Bindings,
}

impl Planner<'_> {
    /// Plans a query.
    pub fn query(&self, query: ast::Query, source: &Source) -> Result<Planned> {
        planning::hold_tables(&query, self.bindings)?;
        self.planned(query, source)
    }

    /// Plans a query whose tables have been counted.
    fn planned(&self, mut query: ast::Query, source: &Source) -> Result<Planned> {
        planning::check_syntax(&query)?;
        let is_values = matches!(query.body.as_ref(), ast::SetExpr::Values(_));
        rewrite::values::unite(&mut query).map_err(raise)?;
        let mut planned = self.narrowed(query, source)?;
        if is_values {
            let columns = 0..planned.plan.schema().fields().len();
            planned.labels = columns.map(|index| format!("column_{index}")).collect();
        }
        Ok(planned)
    }

    fn narrowed(&self, query: ast::Query, source: &Source) -> Result<Planned> {
        match rewrite::invisible::narrowed(&query, self.bindings)? {
            Some(bindings) => {
                let bindings = &bindings;
                let hides = rewrite::invisible::has_invisible(bindings);
                Planner { bindings, ..*self }.visible(query, source, hides)
            }
            None => self.visible(query, source, false),
        }
    }

    fn visible(&self, query: ast::Query, source: &Source, hides: bool) -> Result<Planned> {
        let rewritten = rewrite::query(query, source, self.bindings, hides).map_err(raise)?;
        let statement = ast::Statement::Query(Box::new(rewritten.query));
        let mut plan = self.sql_to_rel().sql_statement_to_plan(statement)?;
        // Before anybody walks over it.
        planning::hold(&plan)?;
        if rewritten.has_set_operations {
            plan = except::number_rows(union::flatten(plan)?)?;
        }
        let labels = rewritten.labels.of(&plan, self.bindings);
        let origins = Origins::of_plan(&plan);
        Ok(Planned {
            plan,
            labels,
            origins,
        })
    }

    /// Plans an expression over columns in lower case.
    pub fn expression(&self, expression: ast::Expr, schema: &DFSchema) -> Result<Expr> {
        planning::check_syntax(&expression)?;
        let expression = rewrite::expression(expression, self.bindings).map_err(raise)?;
        self.sql_to_rel()
            .sql_to_expr(expression, schema, &mut PlannerContext::new())
    }

    /// A view as a table that is a plan.
    fn view(&self, view: &BoundView, columns: &[String]) -> Result<Arc<dyn TableProvider>> {
        let bindings = Bindings {
            // One list for the statement: the names of its literals are places there.
            long_texts: self.bindings.long_texts.clone(),
            ..view.bindings.clone()
        };
        let planner = Planner {
            bindings: &bindings,
            ..*self
        };
        let planned = planner.planned(view.query.clone(), &view.source);
        let planned = planned.map_err(|error| view.invalid(error))?;
        view.table(planned.plan, columns)
    }

    fn sql_to_rel(&self) -> SqlToRel<'_, Self> {
        let options = ParserOptions::from(&self.state.config_options().sql_parser)
            .with_enable_ident_normalization(false)
            .with_parse_float_as_decimal(true)
            .with_default_null_ordering(NullOrdering::NullsMin);
        SqlToRel::new_with_options(self, options)
    }
}

/// Sends an error of MySQL through DataFusion whole.
pub fn raise(error: MySqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Names of the functions that aggregate, for [`Bindings::aggregates`].
pub fn aggregate_names(state: &SessionState) -> HashSet<String> {
    state
        .aggregate_functions()
        .keys()
        .map(|name| name.to_lowercase())
        .filter(|name| is_aggregate_name(name))
        .collect()
}

impl ContextProvider for Planner<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        planning::check()?;
        let bound = match &name {
            TableReference::Bare { .. } if self.bindings.database.is_none() => {
                return Err(raise(MySqlError::new(ErrorCode::NoDatabase, &[])));
            }
            TableReference::Bare { table } => self.bindings.table(None, table),
            TableReference::Partial { schema, table } => {
                self.bindings.table_or_file(Some(schema.as_ref()), table)
            }
            TableReference::Full { schema, table, .. } => {
                self.bindings.table(Some(schema.as_ref()), table)
            }
        };
        match bound {
            Some(BoundTable {
                view: Some(view),
                columns,
                ..
            }) => Ok(provider_as_source(self.view(view, columns)?)),
            Some(bound) if bound.unique.is_empty() => {
                Ok(provider_as_source(Arc::clone(&bound.provider)))
            }
            Some(bound) => {
                let provider = Arc::clone(&bound.provider);
                let keyed = Keyed::new(provider, bound.unique.clone());
                Ok(provider_as_source(Arc::new(keyed)))
            }
            None => {
                let database = name
                    .schema()
                    .map(str::to_owned)
                    .or_else(|| self.bindings.database.clone())
                    .unwrap_or_default();
                Err(raise(MySqlError::no_such_table(&database, name.table())))
            }
        }
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(WorkRows::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        self.type_planner.cloned()
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let of_state = || self.state.scalar_functions().get(name).cloned();
        let long_text = || self.bindings.long_texts.function(name);
        let kept = || keeping(name);
        scalar_function(name)
            .or_else(long_text)
            .or_else(kept)
            .or_else(of_state)
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        let function = || self.state.aggregate_functions().get(name).cloned();
        is_aggregate_name(name).then(function).flatten()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        scalar_names().map(str::to_owned).collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state
            .higher_order_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}
